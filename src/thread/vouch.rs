//! The check before any bytes of a thread are used.
//!
//! Every reader of a state, packet or working tree verifies the thread first, at the commit that it
//! then reads. A tampered thread is always refused; an untrusted one unless the user insists. An
//! incomplete thread is accepted as far as it is here.

use crate::git::refs;
use crate::git::store::Store;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::name::ThreadId;
use crate::verify::{self, HOW_TO_KNOW, Logs, Options, Standpoint, ThreadSnapshot, Unproven, Unsound, Verified};

/// A verified thread at one commit.
#[derive(Clone, Debug)]
pub struct VerifiedThread {
    sound: Verified<ThreadSnapshot>,
    reference: String,
    trust: Trust,
    warnings: Vec<String>,
}

/// The trust required to continue a thread.
#[derive(Clone, Debug)]
pub struct Trust {
    /// The keys that the reader knows.
    pub options: Options,
    /// Whether the user accepts untrusted keys.
    pub accept_untrusted: bool,
}

/// Verifies a thread that was at `tip`, as it is now, with its keys and lineage.
pub fn vouch(
    store: &Store,
    thread: &ThreadId,
    reference: &str,
    tip: Oid,
    trust: &Trust,
) -> Result<VerifiedThread, AnyError> {
    let logs = Logs::read(store)?;
    // Logs are written after the ref, so a concurrent append can make them name more entries than
    // were read.
    let tip = refs::read(store, reference)?.unwrap_or(tip);
    let at = Standpoint { objects: store, home: store, thread, reference, place: reference, tip };
    let examined = verify::thread_at(&at, &logs, &trust.options);
    let (report, whole_lineage) = (examined.report.clone(), examined.whole_lineage);
    let sound = match examined.proven(trust.accept_untrusted) {
        Ok(sound) => Some(sound),
        Err(Unproven::Tampered(finding)) => return Err(Unsound { thread: thread.clone(), finding }.into()),
        Err(Unproven::Untrusted(finding)) => return Err(Error::Untrusted { thread: thread.clone(), finding }.into()),
        Err(Unproven::Unread) => None,
    };
    let mut warnings = Vec::new();
    if let Some(finding) = report.finding() {
        warnings.push(format!("the thread {thread} is not to be trusted, and was accepted: {finding}"));
    }
    if !whole_lineage {
        let finding = "lineage: some of its threads are not here, so their keys are unknown".to_owned();
        if trust.options.strict_signers && !trust.accept_untrusted {
            return Err(Error::Untrusted { thread: thread.clone(), finding }.into());
        }
        warnings.push(format!("of the thread {thread}, {finding}"));
    }
    let unread =
        || Unsound { thread: thread.clone(), finding: "its chain could not be read to its first entry".into() };
    let sound = sound.ok_or_else(unread)?;
    if warnings.is_empty() {
        let of_lineage = report.lineage.iter().map(|ancestor| &ancestor.signer);
        let unknown = report.signers.iter().chain(of_lineage).filter(|signer| !signer.trusted);
        let mut unknown: Vec<&str> = unknown.map(|signer| signer.fingerprint.as_str()).collect();
        unknown.sort_unstable();
        unknown.dedup();
        warnings.extend(
            unknown
                .iter()
                .map(|key| format!("the thread {thread} rests on a key that is not known here: {key}; {HOW_TO_KNOW}")),
        );
    }
    Ok(VerifiedThread { sound, reference: reference.to_owned(), trust: trust.clone(), warnings })
}

impl VerifiedThread {
    /// Returns the thread.
    pub fn sound(&self) -> &Verified<ThreadSnapshot> {
        &self.sound
    }

    /// Verifies the present state of the thread with the same trust.
    pub(super) fn renewed(&self, store: &Store) -> Result<Self, AnyError> {
        vouch(store, &self.sound.thread, &self.reference, self.sound.commit, &self.trust)
    }

    /// Returns the thread's ref.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Returns notes for the reader.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

errors! {
    /// The reason for refusing a thread.
    #[derive(Debug, thiserror::Error)] pub enum Error = "untrusted";
    Untrusted { thread: ThreadId, finding: String }: "thread {thread} is not to be trusted: {finding}";
}
