//! A proof of an item, taken for what it shows.

use crate::model::digest::Digest;
use crate::model::entry::{Event, ItemFired, ItemReconciled};
use crate::model::proof::Proof;
use crate::model::time::Moment;
use crate::verify::{Options, State};

use super::Revealed;

/// What a proof of an item shows, where it holds.
pub(in crate::verify) struct Sealed {
    /// The dispatch.
    pub(in crate::verify) dispatch: ItemFired,
    /// The end of the attempt.
    pub(in crate::verify) end: ItemReconciled,
    /// The key that sealed the run.
    pub(in crate::verify) key: String,
    /// The leaf hash of entry 0.
    pub(in crate::verify) first: Digest,
    /// When, by its own word.
    pub(in crate::verify) at: Moment,
}

/// Takes a proof for what it shows, if it holds by itself; an error says what does not.
pub(in crate::verify) fn sealed(proof: &Proof, options: &Options) -> Result<Sealed, String> {
    let evidence = Revealed::read(proof);
    let rows = [evidence.chain(), evidence.root(None), evidence.signatures(options, None).verdict];
    if let Some(failed) = rows.iter().find(|verdict| verdict.state == State::Failed) {
        return Err(failed.detail.clone());
    }
    let (Some(last), [Ok(fired), Ok(ended)]) = (&evidence.last.0.as_ref().ok(), evidence.shown.as_slice()) else {
        return Err("it shows no dispatch and no end".to_owned());
    };
    let (Event::ItemFired(dispatch), Event::ItemReconciled(end)) = (&fired.entry.event, &ended.entry.event) else {
        return Err("it shows no dispatch and no end".to_owned());
    };
    let key = last.1.clone()?;
    let first = evidence.first.decoded().ok_or("its first entry cannot be read")?.hash;
    Ok(Sealed { first, dispatch: dispatch.clone(), end: end.clone(), key, at: last.0.entry.at })
}
