//! Accepts statements from the logs of other keys: decisions on items, and documents.
//!
//! A statement names the run by the hash of its entry 0, and a decision names all products that it
//! is about. So it stays valid for exactly these, however far the run went on. It is recorded whole
//! with its signature, so that `verify` needs nothing else. A statement that cannot be accepted yet
//! stays in its log and is tried again the next time.

use std::collections::BTreeSet;
use std::io::Seek as _;

use serde::Serialize;

use crate::git::store::{self, Store};
use crate::git::{history, refs};
use crate::ledger::chain;
use crate::ledger::log::Dated;
use crate::model::any_error::AnyError;
use crate::model::decision::{Decision, ItemDecided};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, LogDecided, LogWritten, Product, Role};
use crate::model::format;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::place::{Kind, Place};
use crate::model::state::Illegal;
use crate::model::time::Moment;
use crate::repository::{Repository, Trust};
use crate::run::query::target::unarchived_runs;
use crate::run::query::view::is_sealed;
use crate::verify::{Options, read_statement};

use super::revisions::{self, InsteadOf, Put};
use super::{Denied, NewEntry, OpenRun};

/// The most bytes of a statement, besides the products that it is about. Every message of `approve`
/// fits.
const MAX_STATEMENT: usize = 64 << 10;

/// A statement of another key, with what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatementOutcome {
    /// The run.
    pub run: RunId,
    /// The key that made it.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub by: String,
    /// The item that was decided about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The document that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<FilePath>,
    /// Why it was not recorded, or `None` if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A statement, with the commit that makes it.
struct Statement {
    by: String,
    actor: String,
    /// When it was made, by its own word.
    at: Moment,
    /// The digest of its content, author and time. Two logs of a key can contain the same
    /// statement.
    digest: Digest,
    commit: String,
    content: Content,
}

enum Content {
    Decided(LogDecided),
    Written(LogWritten),
}

impl Repository {
    /// Accepts statements on all open runs of this repository. Skips runs that cannot be opened;
    /// their driver reports why.
    pub fn accept_statements(&self) -> Result<Vec<StatementOutcome>, AnyError> {
        let mut outcomes = Vec::new();
        if self.own_fingerprint().is_none() {
            return Ok(outcomes);
        }
        let logs = StatementLogs::find(&self.store)?;
        let runs = if logs.0.is_empty() { Vec::new() } else { unarchived_runs(&self.store)? };
        for run in runs {
            let is_silent = logs.about(&self.store, &run).next().is_none();
            if is_silent || is_sealed(&self.store, &format::run_ref(&run)) {
                continue;
            }
            match self.opened_after_fetch(&run) {
                Ok(mut open) => outcomes.extend(self.accept(&mut open, &logs)?),
                Err(Denied::Refused(_)) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Ok(outcomes)
    }

    /// Accepts statements on one run.
    pub fn accept_statements_on(&self, open: &mut OpenRun) -> Result<Vec<StatementOutcome>, AnyError> {
        self.accept(open, &StatementLogs::find(&self.store)?)
    }

    fn accept(&self, open: &mut OpenRun, logs: &StatementLogs) -> Result<Vec<StatementOutcome>, AnyError> {
        let own = open.writer().signer.fingerprint();
        let drives = [Role::Own, Role::Work].iter().any(|role| open.state.keys.has(&own, *role));
        if open.state.sealed || !drives {
            return Ok(Vec::new());
        }
        let statements = statements(&self.store, open, logs)?;
        if statements.is_empty() {
            return Ok(Vec::new());
        }
        let trust = self.options(&Trust::default(), &mut |_| ())?;
        let mut outcomes = Vec::new();
        for statement in statements {
            let refused = match (refusal(open, &statement, &trust), &statement.content) {
                (Some(why), _) => Some(why),
                (None, Content::Decided(content)) => self.accept_decision(open, &statement, content)?,
                (None, Content::Written(content)) => self.accept_document(open, &statement, content)?,
            };
            let (item, decision, document) = match statement.content {
                Content::Decided(content) => (Some(content.item), Some(content.decision), None),
                Content::Written(content) => (None, None, Some(content.name)),
            };
            let (run, by) = (open.id().clone(), statement.by);
            outcomes.push(StatementOutcome { run, by, item, decision, document, refused });
        }
        Ok(outcomes)
    }

    /// Records a document that another key wrote, or returns why not.
    fn accept_document(
        &self,
        open: &mut OpenRun,
        statement: &Statement,
        document: &LogWritten,
    ) -> Result<Option<String>, AnyError> {
        let latest = open.state.documents.latest(&document.name).map(|latest| latest.product.sha256);
        if document.previous.is_some() && document.previous != latest {
            return Ok(Some("it follows a revision that is not the latest".to_owned()));
        }
        let put = Put {
            name: document.name.clone(),
            product: Product { sha256: document.sha256, oid: document.oid, size: document.size },
            schema: document.schema.clone(),
            instead_of: document.previous.map(InsteadOf::Revision),
            statement: Some((statement.actor.clone(), statement.commit.clone())),
        };
        if let Some(why) = self.document_fault(&put)? {
            return Ok(Some(why));
        }
        match revisions::put(open, &put, &self.schemas()) {
            Ok(_) => Ok(None),
            Err(revisions::Error::Run(error)) => illegal_reason(error),
            Err(revisions::Error::Store(error)) => Err(error.into()),
            Err(why) => Ok(Some(why.to_string())),
        }
    }

    /// Returns why the bytes of a document cannot be recorded, or `None` if they can.
    fn document_fault(&self, put: &Put) -> Result<Option<String>, AnyError> {
        if self.store.kind(put.product.oid)?.is_some_and(|kind| !kind.is_blob()) {
            return Ok(Some("it names an object that is not a blob".to_owned()));
        }
        let mut copy = tempfile::tempfile().map_err(Error::Copy)?;
        match self.store.copy_blob(put.product.oid, &mut copy) {
            Ok(is) if is == (put.product.sha256, put.product.size) => {}
            Ok(_) => return Ok(Some("its bytes do not match its digest".to_owned())),
            Err(store::Error::Missing(_)) => return Ok(Some("its bytes were not fetched".to_owned())),
            Err(other) => return Err(other.into()),
        }
        copy.rewind().map_err(Error::Copy)?;
        let passed = self.gate().check_reader(put.name.as_str(), &mut copy).map_err(Error::Copy)?;
        Ok(passed.err().map(|secret| secret.to_string()))
    }

    /// Records a decision, or returns why not.
    fn accept_decision(
        &self,
        open: &mut OpenRun,
        statement: &Statement,
        vote: &LogDecided,
    ) -> Result<Option<String>, AnyError> {
        if let Err(why) = self.message(vote.message.as_deref()) {
            return Ok(Some(why.to_string()));
        }
        loop {
            let Some(at) = open.state.graph.position(&vote.item) else {
                return Ok(Some(Illegal::UnknownItem(vote.item.clone()).to_string()));
            };
            let event = ItemDecided {
                attempt: open.state.items[at].attempts,
                message: vote.message.clone(),
                said: Some(statement.commit.clone()),
                ..ItemDecided::new(
                    vote.item.clone(),
                    vote.decision,
                    open.state.decided_status(at, vote.decision),
                    vote.about.clone(),
                    statement.by.clone(),
                )
            };
            // Checked before anything is staged, so that a decision that comes too early costs
            // little.
            if let Err(why) = open.state.expect_decision(&event) {
                return Ok(Some(explain(&why)));
            }
            match open.propose(&[NewEntry::plain(Event::ItemDecided(event))]) {
                Ok(Some(_)) => return Ok(None),
                // Another writer appended first.
                Ok(None) => {}
                Err(error) => return illegal_reason(error),
            }
        }
    }
}

/// Returns why a statement cannot be recorded, whatever it says, or `None` if it can.
fn refusal(open: &OpenRun, statement: &Statement, trust: &Options) -> Option<String> {
    let (role, of_run) = match &statement.content {
        // The run has the products that a decision is about.
        Content::Decided(vote) => (Role::Approve, format::canonical(&vote.about).len()),
        Content::Written(_) => (Role::Document, 0),
    };
    if !open.state.keys.has(&statement.by, role) {
        return Some(format!("the key {} does not have the role `{role}`", statement.by));
    }
    if let Some(why) = trust.speaks_against(&statement.by, statement.at) {
        return Some(format!("the key {} {why}", statement.by));
    }
    let besides = statement.commit.len().saturating_sub(of_run);
    (besides > MAX_STATEMENT)
        .then(|| format!("it has {besides} bytes besides its products; at most {MAX_STATEMENT} are recorded"))
}

/// Returns why an event was not recorded if the event is at fault, and otherwise an error.
fn illegal_reason(error: super::Error) -> Result<Option<String>, AnyError> {
    match error {
        super::Error::Illegal(why) => Ok(Some(explain(&why))),
        super::Error::Chain(error @ chain::Error::TooLarge(..)) => Ok(Some(error.to_string())),
        other => Err(other.into()),
    }
}

fn explain(why: &Illegal) -> String {
    match why {
        Illegal::OtherProducts(_) => "it is about products that have changed since".to_owned(),
        why => why.to_string(),
    }
}

/// The fetched logs with statements on runs of other keys, each with its head and tree.
struct StatementLogs(Vec<(Oid, Oid)>);

impl StatementLogs {
    /// Finds the logs by their trees, once for all runs.
    fn find(store: &Store) -> Result<Self, AnyError> {
        let mut logs = Vec::new();
        for (name, tip) in refs::list(store, format::FETCHED_REFS)? {
            let is_log = Place::fetched_of(&name, Kind::Log).is_some();
            let Some(decoded) = is_log.then(|| chain::decode(store, tip).ok()).flatten() else { continue };
            if [format::DECIDED, format::WRITTEN]
                .into_iter()
                .any(|folder| store.has_tree_at(decoded.tree, folder).unwrap_or(false))
            {
                logs.push((tip, decoded.tree));
            }
        }
        Ok(Self(logs))
    }

    /// Returns the heads of the logs with statements on a run.
    fn about<'s>(&'s self, store: &'s Store, run: &RunId) -> impl Iterator<Item = Oid> + 's {
        let folders = [format::DECIDED, format::WRITTEN].map(|folder| format!("{folder}/{}", format::log_path(run)));
        self.0
            .iter()
            .filter(move |(_, tree)| folders.iter().any(|folder| store.has_tree_at(*tree, folder).unwrap_or(false)))
            .map(|(tip, _)| *tip)
    }
}

/// Returns the statements on a run that are not recorded yet, by their own times.
///
/// Only the last of several decisions of one key about the same products counts. Of several
/// documents that a key wrote under one name, only those after the last recorded one count. Older
/// statements are ignored, because another remote may have an older copy of the log.
fn statements(store: &Store, open: &OpenRun, logs: &StatementLogs) -> Result<Vec<Statement>, AnyError> {
    let (mut statements, mut read) = (Vec::new(), BTreeSet::new());
    for tip in logs.about(store, open.id()) {
        // A log that is not complete here has no statements.
        for commit in history::since(store, tip, None).unwrap_or_default().into_iter().rev() {
            if !read.insert(commit) {
                continue;
            }
            let (_, raw) = store.read(commit)?;
            let statement = statement(open.id(), raw).filter(|(_, first)| *first == open.first());
            statements.extend(statement.map(|(statement, _)| statement));
        }
    }
    statements.sort_by_key(|statement| statement.at);
    let recorded: BTreeSet<Digest> =
        statements.iter().filter(|one| open.state.was_said(&one.commit)).map(|one| one.digest).collect();
    let (mut decided, mut written, mut known) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut last: Vec<Statement> = Vec::new();
    for statement in statements.into_iter().rev() {
        let is_recorded = recorded.contains(&statement.digest);
        if !known.insert(statement.digest) {
            continue;
        }
        let stands = match &statement.content {
            Content::Decided(content) => {
                decided.insert((statement.by.clone(), content.item.clone(), format::canonical(&content.about)))
            }
            Content::Written(content) => {
                let key = (statement.by.clone(), content.name.clone());
                if is_recorded { written.insert(key) } else { !written.contains(&key) }
            }
        };
        if stands && !is_recorded {
            last.push(statement);
        }
    }
    last.reverse();
    Ok(last)
}

/// Parses a commit of a log as a statement on a run. Also returns the hash of entry 0 that it
/// names.
fn statement(run: &RunId, raw: Vec<u8>) -> Option<(Statement, Digest)> {
    let commit = String::from_utf8(raw).ok()?;
    // Most log entries are something else, and checking a signature takes longer than this.
    if !commit.contains("\nlog.decided ") && !commit.contains("\nlog.written ") {
        return None;
    }
    let (decoded, by) = read_statement(commit.as_bytes()).ok()?;
    if decoded.entry.about.run() != Some(run) {
        return None;
    }
    let Dated { at, event } = Dated::from_entry(&decoded.entry);
    let (first, bytes, content) = match event {
        Event::LogDecided(vote) => (vote.first, format::canonical(&(&by, at, &vote)), Content::Decided(vote)),
        Event::LogWritten(document) => {
            (document.first, format::canonical(&(&by, at, &document)), Content::Written(document))
        }
        _ => return None,
    };
    let digest = Digest::compute(&bytes);
    Some((Statement { by, actor: decoded.entry.actor, at, digest, commit, content }, first))
}

errors! {
    /// Failures to accept statements.
    #[derive(Debug, thiserror::Error)] pub enum Error = "io";
    Copy(#[source] std::io::Error): "cannot copy a document to a temporary file";
}
