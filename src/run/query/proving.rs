//! Proves a product, or the growth of a run, to a person without the repository.
use crate::ledger::prove;
use crate::model::any_error::AnyError;
use crate::model::plan::ProductKey;
use crate::model::proof::Proof;
use crate::repository::Repository;

use super::target::{self, Target};

impl Repository {
    /// Proves `<run>/<item>` or `<run>/<item>:<product>` of a sealed run. With `since`, proves that
    /// a sealed run `<run>` still begins with the entries up to that number.
    pub fn prove(&self, text: &str, since: Option<u64>) -> Result<Proof, AnyError> {
        let store = &self.store;
        let (target, rest) = Target::with_rest(store, text)?;
        match (since, rest) {
            (Some(since), None) => Ok(prove::growth(store, &target.reference, since)?),
            (Some(_), Some(_)) => Err(Error::WholeRun.into()),
            (None, None) => Err(Error::NotSaid.into()),
            (None, Some(rest)) => {
                let view = target.view(store)?;
                let (at, selected) = target::item_and_rest(&view, rest)?;
                let key = selected
                    .map(|key| ProductKey::from_name(key).map_err(|_| Error::NoProduct(key.to_owned())))
                    .transpose()?;
                Ok(prove::item(store, &target.reference, &view.state.graph.item(at).id, key.as_ref())?)
            }
        }
    }
}

errors! {
    /// Failures to prove something.
    #[derive(Debug, thiserror::Error)] pub enum Error = "usage" 2;
    WholeRun: "--since is about a whole run: name no item";
    NotSaid: "say what to prove: RUN/ITEM:patch, or RUN --since SEQ";
    NoProduct(String): "{0:?} is no product: say :patch or :outputs/PATH";
}
