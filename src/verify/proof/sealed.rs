//! A proof of an item, taken for what it shows.

use crate::model::digest::Digest;
use crate::model::entry::{Event, ItemFired, ItemReconciled};
use crate::model::proof::Proof;
use crate::model::time::Moment;
use crate::verify::{Options, State};

use super::Revealed;
use super::shown::End;

/// What a proof of an item shows, where it holds.
pub(in crate::verify) struct Sealed {
    /// The dispatch.
    pub(in crate::verify) dispatch: ItemFired,
    /// The end of the attempt.
    pub(in crate::verify) end: ItemReconciled,
    /// The keys that began the run, sealed it, and admitted the one that sealed it, each with when it did, by its own word.
    pub(in crate::verify) keys: Vec<(String, Moment)>,
    /// The leaf hash of entry 0.
    pub(in crate::verify) first: Digest,
}

/// Takes a proof for what it shows, if it holds by itself; an error says what does not.
pub(in crate::verify) fn sealed(proof: &Proof, options: &Options) -> Result<Sealed, String> {
    let evidence = Revealed::read(proof);
    let rows = [evidence.chain(), evidence.root(None), evidence.signatures(options, None).verdict];
    if let Some(failed) = rows.iter().find(|verdict| verdict.state == State::Failed) {
        return Err(failed.detail.clone());
    }
    let [Ok(fired), Ok(ended)] = evidence.shown.as_slice() else {
        return Err("it shows no dispatch and no end".to_owned());
    };
    let (Event::ItemFired(dispatch), Event::ItemReconciled(end)) = (&fired.entry.event, &ended.entry.event) else {
        return Err("it shows no dispatch and no end".to_owned());
    };
    let first = evidence.first.decoded().ok_or("its first entry cannot be read")?.hash;
    let signed = |end: &End| match &end.0 {
        Ok((decoded, signer)) => Ok((signer.clone()?, decoded.entry.at)),
        Err(why) => Err(why.clone()),
    };
    let keys = evidence.ends().map(signed).collect::<Result<_, String>>()?;
    Ok(Sealed { dispatch: dispatch.clone(), end: end.clone(), keys, first })
}
