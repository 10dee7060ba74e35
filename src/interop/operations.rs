//! Exports of runs.

use serde_json::Value;

use crate::anchor::gate::{self, Terms};
use crate::anchor::verification::Verification;
use crate::model::digest::Digest;
use crate::model::problems::Problems;
use crate::repository::{self, Repository};
use crate::run::{Target, target};
use crate::verify::Report;

use super::{bundle_json, in_toto, verify_bundle_json};

/// An export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// DSSE envelopes, each an in-toto Statement v1 with SLSA provenance v1 of one product.
    InToto,
    /// The audit bundle of another orchestrator.
    BundleJson,
}

impl Repository {
    /// Verifies a sealed run and exports it, or one item of it for in-toto, signed by our own key.
    ///
    /// Calls `warn` with what a reader of the run should know.
    pub fn export(
        &self,
        text: &str,
        format: Format,
        terms: Terms,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Vec<Value>, Error> {
        let (target, rest) = Target::with_rest(&self.store, text)?;
        let run = self.vetted_whole(&target, terms, warn)?;
        let item = rest.map(|rest| target::item(&run, rest)).transpose()?;
        let item = item.map(|at| &run.state.graph.item(at).id);
        let signer = self.signer()?;
        match (format, item) {
            (Format::InToto, item) => Ok(in_toto::export(&self.store, &run, item, &signer)?),
            (Format::BundleJson, None) => Ok(vec![bundle_json::export(&self.store, &run, &signer)?]),
            (Format::BundleJson, Some(_)) => Err(Error::WholeRun),
        }
    }
}

impl Verification<'_> {
    /// Verifies an audit bundle of another orchestrator against an optional root.
    pub fn bundle_json(&self, bytes: &[u8], root: Option<Digest>) -> Result<Report, Problems> {
        verify_bundle_json(bytes, self.repository.own_key().as_ref(), root, &self.options)
    }
}

/// An error while exporting.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("a bundle is of a whole run: leave the item out")]
    WholeRun,
    #[error(transparent)]
    Target(#[from] target::Error),
    #[error(transparent)]
    Gate(#[from] gate::Error),
    #[error(transparent)]
    Export(#[from] super::Error),
    #[error(transparent)]
    Repository(#[from] repository::Error),
}
