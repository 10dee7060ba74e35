//! The check that an attached packet must pass before its checkpoint changes hands or is gone on from.
//!
//! It is the check of [`crate::packet`], with two differences: a resume token that any thread at hand was resumed with is used, and
//! of a run that is not here nothing can be said. A checkpoint without a packet passes.

use std::io::{self, Write};

use crate::git::store::{self, Store};
use crate::ledger::chain::Writer;
use crate::model::packet::{MAX_BYTES, Packet, Unclean, Unusable};
use crate::model::thread::{Checkpoint, CheckpointId, Trail};
use crate::packet::facts::{self, Absent};
use crate::packet::{self, Classification, Report, Terms};
use crate::verify::{self, AtHand, Gate, Logs, Options};

use super::used::{self, Used};

/// What let a checkpoint pass.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// What its packet is; nothing where none is attached.
    pub found: Option<Classification>,
    /// How bad the packet is that was accepted; nothing where it is clean.
    pub accepted: Option<Unclean>,
    /// The resume token, if it may be written down.
    pub(super) token: Option<String>,
}

/// Checks the packet of a checkpoint, and refuses one that is worse than what is accepted.
///
/// `objects` holds its bytes; `here` is the repository that its facts are looked up in, of runs by keys that are not distrusted
/// by whoever reads there. Nothing is written.
pub(super) fn pass(
    objects: &Store,
    (here, reader): (&Store, &Options),
    (checkpoint, trail): (&Checkpoint, &Trail),
    accept: Option<Unclean>,
    terms: Terms,
) -> Result<Passed, Error> {
    let Some(read) = read(objects, checkpoint)? else { return Ok(Passed::default()) };
    let logs = Logs::read(here)?;
    let gate = Gate { store: here, at_hand: &AtHand::logs(&logs), options: reader, accept_untrusted: false };
    let report = report(&read, &gate, trail, terms)?;
    let found = report.classification;
    let accepted = found.unclean();
    if accepted > accept {
        return Err(Error::Unclean { checkpoint: checkpoint.id.clone(), report: Box::new(report) });
    }
    let token = read.ok().and_then(|packet| packet::plain_token(&packet).map(str::to_owned));
    Ok(Passed { found: Some(found), accepted, token })
}

/// Returns what is known to whoever writes here, where nobody says whom else they know.
pub(super) fn own(writer: &Writer) -> Options {
    Options { own_key: Some(writer.signer.fingerprint()), ..Options::default() }
}

/// Checks a packet that belongs to a checkpoint of a thread; tokens that any thread at hand consumed are used.
pub fn report(read: &Result<Packet, Unusable>, gate: &Gate<'_>, trail: &Trail, terms: Terms) -> Result<Report, Error> {
    let consumed = trail.consumed.union(Used::read(gate.store)?.tokens()).cloned().collect();
    let facts = match read {
        Ok(packet) => facts::look_up(&packet.claims, Some(gate), Absent::Open),
        Err(_) => packet::no_facts(),
    };
    Ok(packet::check(read, facts, &Terms { consumed, ..terms }))
}

/// Reads the packet of a checkpoint; none where none is attached.
pub fn read(objects: &Store, checkpoint: &Checkpoint) -> Result<Option<Result<Packet, Unusable>>, Error> {
    let Some(product) = checkpoint.content.packet else { return Ok(None) };
    let mut head = Head(Vec::new());
    if objects.copy_blob(product.oid, &mut head)? != (product.sha256, product.size) {
        return Err(Error::Altered(checkpoint.id.clone()));
    }
    Ok(Some(packet::read(&head.0)))
}

/// Keeps the beginning of what is written: one byte more than a packet may have, so that a larger one is told.
struct Head(Vec<u8>);

impl Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (MAX_BYTES + 1).saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a checkpoint did not pass.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the packet of {checkpoint} is {}", .report.classification.as_str())]
    Unclean { checkpoint: CheckpointId, report: Box<Report> },
    #[error("the packet of {0} is not what its entry says")]
    Altered(CheckpointId),
    #[error(transparent)]
    Used(#[from] used::Error),
    #[error(transparent)]
    Logs(#[from] verify::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
}
