//! What is proved to somebody who has nothing else: a product, or how a run went on.

use crate::ledger::prove;
use crate::model::plan::ProductKey;
use crate::model::proof::Proof;
use crate::repository::Repository;

use super::target::{self, Target};

impl Repository {
    /// Proves what a text names, `<run>/<item>` or `<run>/<item>:<product>`; of a whole run, that the entries up to `since` still
    /// begin it. The run must be sealed.
    pub fn prove(&self, text: &str, since: Option<u64>) -> Result<Proof, Error> {
        let store = &self.store;
        let (target, rest) = Target::with_rest(store, text)?;
        match (since, rest) {
            (Some(since), None) => Ok(prove::growth(store, &target.reference, since)?),
            (Some(_), Some(_)) => Err(Error::WholeRun),
            (None, None) => Err(Error::NotSaid),
            (None, Some(rest)) => {
                let view = target.view(store)?;
                let (at, selected) = target::item_and_rest(&view, rest)?;
                let named = |text: &str| ProductKey::named(text).map_err(|_| Error::NoProduct(text.to_owned()));
                let key = selected.map(named).transpose()?;
                Ok(prove::item(store, &target.reference, &view.state.graph.item(at).id, key.as_ref())?)
            }
        }
    }
}

/// Why nothing is proved.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("--since is about a whole run: name no item")]
    WholeRun,
    #[error("say what to prove: RUN/ITEM:patch, or RUN --since SEQ")]
    NotSaid,
    #[error("{0:?} is no product: say :patch or :outputs/PATH")]
    NoProduct(String),
    #[error(transparent)]
    Target(#[from] target::Error),
    #[error(transparent)]
    Prove(#[from] prove::Error),
}
