//! Exports of runs.

use serde_json::Value;

use crate::model::any_error::AnyError;
use crate::model::digest::{Digest, Oid};
use crate::model::item_index::ItemIndex;
use crate::model::name::RunId;
use crate::model::problems::Problems;
use crate::repository::Repository;
use crate::run::query::{Target, VerifiedRun, target};
use crate::share::anchor::gate::Terms;
use crate::share::anchor::verification::{Verification, VerifyRequest};
use crate::verify::Report;
use crate::whence::CommitLines;

use super::facts::Facts;
use super::item_lines::LinesIn;
use super::{agent_trace, bundle_json, cyclonedx, git_ai, in_toto, junit, otel, verify_bundle_json};

/// An export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// DSSE envelopes, each an in-toto Statement v1 with SLSA provenance v1 of one product.
    InToto,
    /// The audit bundle of another orchestrator.
    BundleJson,
    /// Agent Trace records, one for each item with a patch.
    AgentTrace,
    /// The authorship log of Git AI, as the text of a note.
    GitAi,
    /// OTLP traces.
    Otel,
    /// JUnit XML.
    Junit,
    /// A CycloneDX ML-BOM.
    CycloneDx,
}

/// A request to export a run.
#[derive(Clone, Copy)]
pub struct ExportRequest<'a> {
    /// The run, or `RUN/ITEM`.
    pub target: &'a str,
    /// The format.
    pub format: Format,
    /// The commit whose lines are meant, for formats about lines.
    pub commit: Option<&'a str>,
    /// The accepted runs.
    pub terms: Terms,
}

/// An exported document.
#[derive(Clone, Debug, PartialEq)]
pub enum Exported {
    /// JSON.
    Json(Value),
    /// A text that ends with a line feed.
    Text(String),
}

impl Format {
    /// Returns true if the format can be about one item.
    fn takes_item(self) -> bool {
        matches!(self, Self::InToto | Self::AgentTrace | Self::GitAi)
    }

    /// Returns true if the format is about lines of files.
    fn is_about_lines(self) -> bool {
        matches!(self, Self::AgentTrace | Self::GitAi)
    }
}

impl Repository {
    /// Verifies a sealed run and exports it, or one item of it for the formats that allow that.
    ///
    /// Calls `warn` with what a reader of the run or of the export should know.
    pub fn export(&self, request: ExportRequest<'_>, warn: &mut dyn FnMut(&str)) -> Result<Vec<Exported>, AnyError> {
        let (target, rest) = Target::with_rest(&self.store, request.target)?;
        if rest.is_some() && !request.format.takes_item() {
            return Err(Error::WholeRun.into());
        }
        if request.commit.is_some() && !request.format.is_about_lines() {
            return Err(Error::NoLines.into());
        }
        let run = self.vetted_whole(&target, request.terms, warn)?;
        let item = rest.map(|rest| target::item(&run, rest)).transpose()?;
        match request.format {
            Format::InToto => {
                let item = item.map(|at| &run.state.graph.item(at).id);
                Ok(json(in_toto::export(&self.store, &run, item, &self.signer()?)?))
            }
            Format::BundleJson => Ok(json([bundle_json::export(&self.store, &run, &self.signer()?)?])),
            _ => self.export_facts(request, &target, &run, item, warn),
        }
    }

    /// Exports a run in a format that is not signed.
    fn export_facts(
        &self,
        request: ExportRequest<'_>,
        target: &Target,
        run: &VerifiedRun,
        item: Option<ItemIndex>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Vec<Exported>, AnyError> {
        let facts = Facts::read(&self.store, run, target)?;
        let commit = request.commit.map(|commit| self.lines_of_run(commit, target)).transpose()?;
        let lines_in = commit.as_ref().map_or(LinesIn::Patch, LinesIn::Commit);
        Ok(match request.format {
            Format::AgentTrace => json(agent_trace::export(&facts, item, lines_in)?),
            Format::GitAi => {
                let log = git_ai::export(&facts, item, lines_in)?;
                log.left_out.iter().for_each(|sentence| warn(sentence));
                vec![Exported::Text(log.text)]
            }
            Format::Otel => json([otel::export(&facts)]),
            Format::Junit => vec![Exported::Text(junit::export(&facts))],
            Format::CycloneDx => json([cyclonedx::export(&facts)]),
            Format::InToto | Format::BundleJson => Vec::new(),
        })
    }

    /// Returns the lines that a commit added, if some are proven to be those of the run.
    fn lines_of_run(&self, revision: &str, target: &Target) -> Result<CommitLines, AnyError> {
        // The run was verified already, with its warnings.
        let with = self.verification(VerifyRequest::default(), &mut |_| ())?;
        let found = self.commit_lines(revision, &with)?;
        let mut proven = found.lines.iter().filter(|line| line.proven).flat_map(|line| &line.items);
        if !proven.any(|item| item.run == target.run && item.reference == target.reference) {
            return Err(Error::NotOfRun { commit: found.commit, run: target.run.clone() }.into());
        }
        Ok(found)
    }
}

fn json(values: impl IntoIterator<Item = Value>) -> Vec<Exported> {
    values.into_iter().map(Exported::Json).collect()
}

impl Verification<'_> {
    /// Verifies an audit bundle of another orchestrator against an optional root.
    pub fn bundle_json(&self, bytes: &[u8], root: Option<Digest>) -> Result<Report, Problems> {
        verify_bundle_json(bytes, self.repository.own_key().as_ref(), root, &self.options)
    }
}

errors! {
    /// An error while exporting.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    WholeRun "usage" 2: "this format is of a whole run: leave the item out";
    NoLines "usage" 2: "this format has no lines of files: leave --commit out";
    NotOfRun { commit: Oid, run: RunId } "not-of-run":
        "no line of the commit {commit} is proven to be the run {:?}'s" [run.as_str()];
}
