//! JSON output of `whence` and `verify --commits`.

mod lines;

use std::rc::Rc;

use serde::Serialize;

use crate::model::claims::Reported;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Grade, Outcome, Verified};
use crate::model::format;
use crate::model::manifest::Manifest;
use crate::model::name::{ItemId, RunId};
use crate::model::place::Place;
use crate::model::plan::Item;
use crate::model::printable;
use crate::model::reused::Reused;
use crate::model::time::Moment;
use crate::run::query::VerifiedRun;

use super::attribution::{Attribution, Finding, How, Origin, Verdict};
use super::known::Standing;
use super::lines::Line;

pub use lines::{LinesBy, LinesShown};

/// The maximum number of characters of a prompt to show.
const PROMPT: usize = 200;

/// The output of `whence --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.whence/1")]
pub struct Whence {
    /// The question.
    #[serde(rename = "asked")]
    pub question: String,
    /// Whether the origin of everything is proven.
    pub proven: bool,
    /// The commits, oldest first; for lines, the commits that introduced them, in order of lines.
    pub commits: Vec<CommitShown>,
    /// The lines, if the question was about a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<LinesShown>>,
}

/// The output of `verify --commits --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.verify-commits/1")]
pub struct CommitsVerified {
    /// The range.
    pub range: String,
    /// Whether every commit is exactly the product of items, or a person's.
    pub passed: bool,
    /// Whether one of these items is red: done, but its check failed.
    pub red: bool,
    /// The commits, oldest first.
    pub commits: Vec<CommitShown>,
}

/// A commit and its origin.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CommitShown {
    /// The commit.
    pub commit: Oid,
    /// The first line of its message.
    pub subject: String,
    /// The author: a claim.
    pub author: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The kind of match; null if no item made it.
    pub by: Option<How>,
    /// The reason, in one line.
    pub detail: String,
    /// The items whose products the commit consists of, in order; for an altered commit, the items
    /// that it names.
    pub items: Vec<ItemShown>,
    /// Other items that made the same change.
    pub others: Vec<Named>,
}

/// A reference to an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Named {
    /// The run.
    pub run: RunId,
    /// The ref of the run.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The item.
    pub item: ItemId,
}

/// An item with the record of how its patch was made.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ItemShown {
    /// The item.
    #[serde(flatten)]
    pub item_ref: Named,
    /// The digest of its patch.
    pub product: Digest,
    /// The trust in the run.
    #[cfg_attr(feature = "schemas", schemars(with = "String", extend("enum" = ["proven", "unknown-key", "not-verified"])))]
    pub standing: Standing,
    /// The making of the patch; null if the run does not verify.
    pub made: Option<Made>,
}

/// How a patch was made, as recorded by its run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Made {
    /// The attempt.
    pub attempt: u32,
    /// The time of the record.
    pub at: Moment,
    /// The actor: a claim.
    pub actor: String,
    /// The executor.
    pub executor: String,
    /// The subagent, for the executor `dispatch`.
    pub subagent: Option<String>,
    /// The command; null if the manifest is missing.
    pub argv: Option<Vec<String>>,
    /// The confinement; null if the manifest is missing.
    pub sandbox: Option<String>,
    /// The task.
    pub prompt: Prompt,
    /// The result of the check, if there was one.
    pub check: Option<Verified>,
    /// The worker's claims about itself; absent if it makes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<Reported>,
    /// Whether the run is sealed.
    pub sealed: bool,
    /// The item that replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<ItemId>,
    /// The item of another run whose products were reused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused: Option<Reused>,
    /// `claimed` if the item takes a commit that was made before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
}

/// The task of an item.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Prompt {
    /// The digest of the inputs in canonical form, as in the manifest.
    pub digest: Digest,
    /// The start of the inputs.
    pub text: String,
}

impl Whence {
    pub(super) fn new(
        question: &str,
        found: &[Rc<Finding>],
        lines: Option<(&str, &[Line])>,
        attribution: &mut Attribution<'_>,
    ) -> Self {
        let mut commits = Vec::new();
        for finding in found {
            commits.push(CommitShown::from_finding(finding, attribution));
        }
        let mut line_answers = None;
        if let Some((path, lines)) = lines {
            for line in lines {
                let Some(finding) = &line.finding else { continue };
                if !commits.iter().any(|commit: &CommitShown| commit.commit == finding.commit.oid) {
                    commits.push(CommitShown::from_finding(finding, attribution));
                }
                // Includes items whose patches came with another's.
                let at = commits.iter().position(|commit| commit.commit == finding.commit.oid).unwrap_or_default();
                for origin in &line.origins {
                    let item_ref = Named::from_origin(origin);
                    if !commits[at].items.iter().any(|item| item.item_ref == item_ref) {
                        let item = ItemShown::from_origin(origin, attribution);
                        commits[at].items.push(item);
                    }
                }
            }
            line_answers = Some(lines.iter().map(|line| LinesShown::from_line(path, line)).collect::<Vec<_>>());
        }
        let proven = match &line_answers {
            Some(answers) => answers.iter().all(|line| line.proven),
            None => commits.iter().all(|commit| commit.verdict == Verdict::Product),
        };
        Self { question: question.to_owned(), proven, commits, lines: line_answers }
    }
}

impl CommitsVerified {
    pub(super) fn new(range: &str, found: &[Rc<Finding>], attribution: &mut Attribution<'_>) -> Self {
        let commits = found.iter().map(|finding| CommitShown::from_finding(finding, attribution)).collect::<Vec<_>>();
        let passed = commits.iter().all(|commit| commit.verdict.passes());
        let red = commits.iter().any(|commit| commit.verdict == Verdict::Product && commit.is_red());
        Self { range: range.to_owned(), passed, red, commits }
    }
}

impl CommitShown {
    fn from_finding(finding: &Finding, attribution: &mut Attribution<'_>) -> Self {
        let items = finding.origins.iter().map(|origin| ItemShown::from_origin(origin, attribution)).collect();
        Self {
            commit: finding.commit.oid,
            subject: finding.commit.subject.clone(),
            author: finding.commit.author.clone(),
            verdict: finding.verdict,
            by: finding.how,
            detail: finding.detail.clone(),
            items,
            others: finding.others.iter().map(Named::from_origin).collect(),
        }
    }
}

impl CommitShown {
    /// Returns true if it is the product of items, and one of them takes a commit that was made
    /// before.
    pub fn is_claimed(&self) -> bool {
        self.verdict == Verdict::Product && self.items.iter().any(ItemShown::is_claimed)
    }

    /// Returns true if one of its items is red.
    pub fn is_red(&self) -> bool {
        self.items.iter().any(ItemShown::is_red)
    }
}

impl Named {
    /// Returns the name of the run for commands.
    pub fn place(&self) -> String {
        Place::fetched(&self.reference)
            .map_or_else(|| self.run.to_string(), |(remote, _)| format!("{remote}/{}", self.run))
    }

    fn from_origin(origin: &Origin) -> Self {
        let at = &origin.patch.record.at;
        Self { run: at.run.clone(), reference: at.reference.clone(), item: origin.patch.item.clone() }
    }
}

impl ItemShown {
    fn from_origin(origin: &Origin, attribution: &mut Attribution<'_>) -> Self {
        let item_ref = Named::from_origin(origin);
        let known = attribution.runs.known(&origin.patch.record.at);
        let made = known.run.as_ref().and_then(|run| Made::find(run, &item_ref.item, attribution));
        Self { item_ref, product: origin.patch.product.sha256, standing: known.standing.clone(), made }
    }

    /// Returns true if the item is red: done, but its check failed.
    pub fn is_red(&self) -> bool {
        self.made.as_ref().and_then(|made| made.check).is_some_and(|check| !check.passed)
    }

    /// Returns true if the item takes a commit that was made before.
    pub fn is_claimed(&self) -> bool {
        self.made.as_ref().is_some_and(|made| made.grade.is_some())
    }
}

impl Made {
    fn find(run: &VerifiedRun, id: &ItemId, attribution: &Attribution<'_>) -> Option<Self> {
        let mut ends = run.links.iter().rev().filter_map(|link| Some((&link.entry, link.entry.event.end_of(id)?)));
        let ended = ends.find(|(_, e)| e.status == Outcome::Done);
        let (Some((entry, ended)), Some(at)) = (ended, run.state.graph.position(id)) else { return None };
        let item = run.state.graph.item(at);
        let blob = run.manifest(id);
        // In a partial clone it may be missing.
        let bytes = blob.and_then(|blob| blob.read(attribution.store).ok());
        let manifest = bytes.and_then(|bytes| Manifest::parse(&bytes).ok());
        Some(Self {
            attempt: ended.attempt,
            at: entry.at,
            actor: entry.actor.clone(),
            executor: item.executor.clone(),
            subagent: manifest.as_ref().and_then(|manifest| manifest.subagent.clone()),
            argv: manifest.as_ref().map(|manifest| manifest.argv.clone()),
            sandbox: manifest.map(|manifest| manifest.claims.sandbox),
            prompt: Prompt::from_item(item),
            check: ended.verify,
            claims: Reported::new(ended.claims.as_deref(), ended.usage),
            sealed: run.state.sealed,
            superseded_by: run.state.replaced_by(at).cloned(),
            reused: ended.reused.clone(),
            grade: ended.grade,
        })
    }
}

impl Prompt {
    fn from_item(item: &Item) -> Self {
        let digest = format::digest_of(&item.inputs);
        let text = match (item.inputs.get("command"), item.inputs.get("workerInput")) {
            (Some(serde_json::Value::String(command)), _) => command.clone(),
            (Some(value), _) | (None, Some(value)) => value.to_string(),
            (None, None) => serde_json::Value::Object(item.inputs.clone()).to_string(),
        };
        Self { digest, text: printable::cut_to(text, PROMPT) }
    }
}

impl Verdict {
    /// Returns true if such a commit is what it claims: an item's, or a person's without a claim.
    pub fn passes(self) -> bool {
        matches!(self, Self::Product | Self::Person)
    }
}
