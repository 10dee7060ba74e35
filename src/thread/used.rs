//! Used nonces of descriptors and used resume tokens of packets.
//!
//! The local and fetched chains, with their lineage, are the record. An entry counts if its
//! signature is valid, by any key. The lock files only serialize readers that then write.

use std::collections::{BTreeSet, HashSet};

use gix::objs::Kind;

use crate::git::store::{self, Store};
use crate::git::{codec, history, refs};
use crate::ledger::sign;
use crate::model::digest::Oid;
use crate::model::entry::{Event, Origin, ThreadCheckpointed};
use crate::model::format;
use crate::model::place::{self, Place};

/// The nonces and tokens that chains record as used.
#[derive(Default)]
pub struct Used {
    nonces: BTreeSet<String>,
    tokens: BTreeSet<String>,
    visited: HashSet<Oid>,
}

impl Used {
    /// Reads all threads of a repository, each commit once.
    ///
    /// An unreadable thread of ours is an error, except in a partial clone. A fetched thread counts
    /// as far as it is here.
    pub fn read(store: &Store) -> Result<Self, Error> {
        let mut used = Self::default();
        let leaves_out = history::is_partial(store) || store.local().is_shallow().unwrap_or(false);
        for (name, tip) in refs::list(store, format::THREAD_REFS)? {
            match used.add(store, tip) {
                Err(source) if !leaves_out => return Err(Error::Thread { name, source }),
                _ => {}
            }
        }
        for (name, tip) in refs::list(store, format::FETCHED_REFS)? {
            if Place::fetched_of(&name, place::Kind::Thread).is_some() {
                // A broken fetched thread must not stop the user's work.
                used.add(store, tip).unwrap_or_default();
            }
        }
        Ok(used)
    }

    /// Adds the thread that ends at `tip`, and its lineage.
    pub fn add(&mut self, store: &Store, tip: Oid) -> Result<(), store::Error> {
        let mut next = Some(tip);
        while let Some(commit) = next.filter(|commit| self.visited.insert(*commit)) {
            let (kind, raw) = store.read(commit)?;
            if kind != Kind::Commit {
                break;
            }
            self.take(&raw);
            // The first parent of a first entry is the checkpoint that the thread was created from.
            let line = raw.split(|byte| *byte == b'\n').nth(1).and_then(|line| line.strip_prefix(b"parent "));
            next = line.and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
        }
        Ok(())
    }

    fn take(&mut self, raw: &[u8]) {
        let message = raw.windows(2).position(|two| two == b"\n\n").map(|at| &raw[at..]);
        if !message.is_some_and(|message| message.starts_with(b"\n\nthread.")) {
            return;
        }
        let Ok(decoded) = codec::decode(raw) else { return };
        let is_signed = || sign::signer(&decoded.payload, decoded.signature.as_deref()).is_ok();
        match decoded.entry.event {
            Event::ThreadCheckpointed(ThreadCheckpointed { origin: Some(Origin::Adopted(offer)), .. })
                if is_signed() =>
            {
                self.nonces.insert(offer.nonce);
            }
            Event::ThreadResumed(e) if is_signed() => self.tokens.extend(e.resume_token),
            _ => {}
        }
    }

    /// Returns true if a nonce was used.
    pub fn has_nonce(&self, nonce: &str) -> bool {
        self.nonces.contains(nonce)
    }

    /// Returns the used resume tokens.
    pub fn tokens(&self) -> &BTreeSet<String> {
        &self.tokens
    }
}

errors! {
    /// An error while reading used nonces and tokens.
    #[derive(Debug, thiserror::Error)] pub enum Error = "unreadable-thread";
    Thread { name: String, source: store::Error }: "cannot read {name}, so the tokens and nonces it used are unknown";
    #[from "unreadable-thread"] Refs(refs::Error);
}
