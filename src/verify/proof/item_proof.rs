//! The evidence that a proof of an item gives.

use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, ItemFired, ItemReconciled};
use crate::model::proof::Proof;
use crate::model::time::Moment;
use crate::verify::{Options, State};

use super::Revealed;

pub(in crate::verify) struct ItemProof {
    pub(in crate::verify) dispatch: ItemFired,
    pub(in crate::verify) end: ItemReconciled,
    /// The keys that began the run, sealed it, and admitted the sealing key, each with the time
    /// that it claims.
    pub(in crate::verify) keys: Vec<(String, Moment)>,
    /// The leaf hash of entry 0.
    pub(in crate::verify) first: Digest,
    /// The base of entry 0.
    pub(in crate::verify) base: Oid,
}

/// Returns the contents of a proof if it is valid by itself, or the first fault.
pub(in crate::verify) fn read_item_proof(proof: &Proof, options: &Options) -> Result<ItemProof, String> {
    let evidence = Revealed::read(proof);
    let rows = [evidence.chain(), evidence.root(None), evidence.signatures(options, None).verdict];
    if let Some(failed) = rows.iter().find(|verdict| verdict.state == State::Failed) {
        return Err(failed.detail.clone());
    }
    let [Ok(fired), Ok(ended)] = evidence.json_entries.as_slice() else {
        return Err("it shows no dispatch and no end".to_owned());
    };
    let (Event::ItemFired(dispatch), Event::ItemReconciled(end)) = (&fired.entry.event, &ended.entry.event) else {
        return Err("it shows no dispatch and no end".to_owned());
    };
    let unread = "its first entry cannot be read";
    let first = evidence.first.decoded().ok_or(unread)?.hash;
    let base = evidence.first.submitted().ok_or(unread)?.base;
    let keys = evidence
        .ends()
        .map(|commit| match &commit.0 {
            Ok((decoded, signer)) => Ok((signer.clone()?, decoded.entry.at)),
            Err(why) => Err(why.clone()),
        })
        .collect::<Result<_, String>>()?;
    Ok(ItemProof { dispatch: dispatch.clone(), end: end.clone(), keys, first, base })
}
