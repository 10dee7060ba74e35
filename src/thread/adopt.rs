//! Adopts an offered checkpoint: verifies everything, then creates a thread from it.
//!
//! The descriptor and its source are untrusted. Nothing is written and no nonce used before every
//! check has passed; then objects, thread and nonce follow in one critical section.

mod source;

use source::{find, is_stranger};

use crate::git::quarantine;
use crate::git::remote::Reach;
use crate::ledger::chain::Writer;
use crate::ledger::sign;
use crate::model::any_error::AnyError;
use crate::model::descriptor::{self, Received};
use crate::model::entry::{AdoptedFrom, Origin, SourceCheckpoint};
use crate::model::name::ThreadId;
use crate::model::packet::Unclean;
use crate::thread::packet::Terms;
use crate::verify::{self, Ancestor, Options, SignerSeen, Unsound};

use super::answers::{AdoptedCheckpoint, CheckpointState};
use super::checkout::{self, Plan};
use super::nonce::{self, Nonces};
use super::used::Used;
use super::{explain_lost_race, gate, save, vacant};

/// A request to adopt.
#[derive(Clone, Debug)]
pub struct Request {
    /// The descriptor as received.
    pub descriptor: Vec<u8>,
    /// The thread to create.
    pub new: ThreadId,
    /// The adopter's name, to compare with the recipient.
    pub me: Option<String>,
    /// The source: a remote, URL, path or bundle. By default this repository, then its remotes.
    pub from: Option<String>,
    /// How to reach remotes, and size limits.
    pub reach: Reach,
    /// The keys that the adopter knows.
    pub options: Options,
    /// Whether to accept an unknown key.
    pub accept_unknown: bool,
    /// The worst accepted classification of the packet.
    pub accept_packet: Option<Unclean>,
    /// Whether to restore the saved working tree.
    pub checkout: bool,
}

/// A descriptor with valid content, signature and recipient.
struct Accepted {
    received: Received,
    signer: String,
    unknown: bool,
}

/// Adopts.
pub fn adopt(writer: &Writer, request: &Request) -> Result<AdoptedCheckpoint, AnyError> {
    let accepted = accept(writer, request)?;
    let descriptor = &accepted.received.descriptor;
    vacant(writer, &request.new)?;
    let found = find(writer, request, &accepted)?;
    let (objects, checkpoint, trail) = (found.quarantine.store(), &found.checkpoint, &found.sound.trail);
    let candidate = gate::Candidate { objects, checkpoint, trail };
    let terms = Terms { elsewhere: true, ..Terms::new(writer.clock.now()) };
    let passed = gate::pass(&candidate, &writer.store, &request.options, request.accept_packet, terms)?;
    let plan = request
        .checkout
        .then(|| Plan::new(&writer.store, &found.quarantine, found.checkpoint.content()))
        .transpose()?;
    let nonces = Nonces::lock(&writer.store).map_err(Error::Nonce)?;
    // The chains are the record; the files also cover deleted threads.
    if nonces.is_used(&descriptor.nonce).map_err(Error::Nonce)?
        || Used::read(&writer.store)?.has_nonce(&descriptor.nonce)
    {
        return Err(Error::Used.into());
    }
    // The lock excludes other adoptions, so only a checkpoint or fork can create the thread now.
    vacant(writer, &request.new)?;
    let _kept = found
        .fetched
        .then(|| found.quarantine.promote(descriptor.commit, None).map_err(Error::Quarantine))
        .transpose()?;
    let content = found.checkpoint.content();
    let accepted_unknown = accepted.unknown || found.sound.lineage.iter().any(is_stranger);
    let origin = accepted.origin(&passed, accepted_unknown);
    let made = save(writer, &request.new, None, content.clone(), Some(Origin::Adopted(origin)));
    let made = made.map_err(|error| explain_lost_race(&request.new, error))?;
    nonces.consume(&descriptor.nonce).map_err(Error::Nonce)?;
    let behind = plan
        .map(|plan| plan.apply())
        .transpose()
        .map_err(|source| Error::Unfinished { thread: request.new.clone(), source })?
        .unwrap_or_default();
    let Accepted { signer, unknown, .. } = &accepted;
    let source = Ancestor {
        source: accepted.source(),
        adopted: true,
        signer: SignerSeen { trusted: !unknown, unknown: *unknown, ..SignerSeen::unknown(signer.clone()) },
        accepted_unknown,
    };
    let lineage = std::iter::once(source).chain(found.sound.into_inner().lineage);
    Ok(AdoptedCheckpoint {
        adopted_from: descriptor.source.clone(),
        new_thread_id: request.new.to_string(),
        made: CheckpointState::from_checkpoint(&made),
        signer: signer.clone(),
        accepted_unknown_signer: accepted_unknown,
        lineage: lineage.collect(),
        packet: passed.found,
        checked_out: request.checkout,
        submodules: behind,
        verified: true,
    })
}

/// Makes the checks that need no source.
fn accept(writer: &Writer, request: &Request) -> Result<Accepted, AnyError> {
    let received = Received::parse(&request.descriptor).map_err(Error::Descriptor)?;
    let descriptor = &received.descriptor;
    let key = sign::check(&received.signed, &received.signature).map_err(Error::Signature)?;
    let signer = sign::fingerprint(&key);
    let now = writer.clock.now();
    if let Some(to) = &descriptor.to_agent
        && request.me.as_ref() != Some(to)
    {
        return Err(Error::Recipient { to: to.clone(), me: request.me.clone() }.into());
    }
    if now > descriptor.expires {
        return Err(Error::Expired(descriptor.expires).into());
    }
    let known = verify::knows_key(&request.options, &signer, now);
    let known = known.map_err(|why| Error::Distrusted { key: signer.clone(), why })?;
    if !known && !request.accept_unknown {
        return Err(Error::UnknownSigner(signer).into());
    }
    let here = writer.store.object_format();
    if descriptor.object_format != here {
        return Err(Error::ObjectFormat { there: descriptor.object_format.clone(), here }.into());
    }
    Ok(Accepted { received, signer, unknown: !known })
}

impl Accepted {
    fn source(&self) -> SourceCheckpoint {
        let descriptor = &self.received.descriptor;
        SourceCheckpoint {
            thread: descriptor.thread.clone(),
            checkpoint: descriptor.checkpoint.clone(),
            commit: descriptor.commit,
        }
    }

    fn origin(&self, passed: &gate::Passed, accepted_unknown: bool) -> AdoptedFrom {
        let descriptor = &self.received.descriptor;
        AdoptedFrom {
            source: self.source(),
            sha256: descriptor.sha256,
            descriptor: self.received.digest,
            nonce: descriptor.nonce.clone(),
            signer: self.signer.clone(),
            accepted_unknown,
            accepted_packet: passed.accepted,
            to_agent: descriptor.to_agent.clone(),
        }
    }
}

errors! {
    /// The reason for refusing to adopt.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Signature(#[source] sign::Error) "bad-signature": "the descriptor is not what was signed";
    Recipient { to: String, me: Option<String> } "wrong-recipient":
        "the checkpoint is offered to {to:?}, not to {}"
        [me.as_ref().map_or("an unnamed agent".to_owned(), |me| format!("{me:?}"))];
    Expired(crate::model::time::Moment) "expired": "the offer expired at {0}";
    UnknownSigner(String) "unknown-signer": "the offer is signed by a key that is not known here: {0}";
    UnknownLineage { thread: ThreadId, signer: String, known: bool } "unknown-signer":
        "the thread goes back to {thread}, by the key {signer}, {}"
        [if *known { "or to a key that was accepted there without being known" } else { "which is not known here" }];
    Untrusted(String) "distrusted": "the source is not to be trusted: {0}";
    Distrusted { key: String, why: String } "distrusted": "the offer is signed by {key}, which {why}";
    ObjectFormat { there: String, here: &'static str } "object-format":
        "the offer is from a {there} repository, and this one is {here}";
    Used "used": "the offer was used in this repository before";
    NoSource(String) "no-source": "{0} is not here, and there is no remote to fetch it from";
    OtherKey { offered: String, owner: String } "distrusted":
        "the offer is signed by {offered}, but the thread belongs to {owner}";
    NotThere { offered: String, entries: u64 } "not-there":
        "the source does not hold {offered} yet: the thread has {entries} {} there"
        [if *entries == 1 { "entry" } else { "entries" }];
    Forged(&'static str) "forged": "the descriptor's `{0}` is not what the thread's signed entries say";
    Unsound(#[source] Unsound) "unsound": "the source does not verify";
    Unfinished { thread: ThreadId, source: checkout::Error } "unfinished":
        "the checkpoint was adopted, but its working tree could not be put back";
    Nonce(#[source] nonce::Error) "nonce": "the nonce could not be noted";
    #[from "bad-descriptor"] Descriptor(descriptor::Error);
    #[from "source"] Quarantine(quarantine::Error);
}
