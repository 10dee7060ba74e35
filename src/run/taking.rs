//! Takes in what others said of our runs in logs of their own: decisions, and documents.
//!
//! A statement names the run by the hash of its entry 0, and a decision all the products that it is about; so it holds for these and
//! nothing else, however far the run went on meanwhile. It is recorded whole, with its signature: `verify` needs nothing besides. What
//! cannot be taken in yet, since the item waits for something or has other products by now, stays where it is and is looked at again
//! the next time.

use std::collections::BTreeSet;
use std::io::Seek as _;

use serde::Serialize;

use crate::git::store::{self, Store};
use crate::git::{history, refs};
use crate::ledger::chain;
use crate::ledger::log::Dated;
use crate::model::decision::{Decision, ItemDecided};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, LogDecided, LogWritten, Product, Role};
use crate::model::format;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::place::{Kind, Place};
use crate::model::state::Illegal;
use crate::model::time::Moment;
use crate::repository::{self, Repository, Trust};
use crate::verify::{Options, said};

use super::document::{self, InsteadOf, Put};
use super::target::unarchived_runs;
use super::{Denied, NewEntry, OpenRun, steer};

/// The longest statement, in bytes, besides what it is about: there is room for every message that `approve` takes.
const LONGEST: usize = 64 << 10;

/// Something that somebody said, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TakenIn {
    /// The run.
    pub run: RunId,
    /// The key that said it.
    pub by: String,
    /// The item that was decided about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// What was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The document that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<FilePath>,
    /// Why it was not taken in; absent where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// One statement, with the commit that makes it.
struct Statement {
    by: String,
    actor: String,
    /// When, by its own word.
    at: Moment,
    /// What it says, by whom and when: two logs of a key may each have an entry of it.
    said: Digest,
    commit: String,
    what: What,
}

enum What {
    Decided(LogDecided),
    Written(LogWritten),
}

impl Repository {
    /// Takes in what others said of the runs of this repository that are not over. One that cannot be opened is left alone: who drives it
    /// is told why.
    pub fn take_in(&self) -> Result<Vec<TakenIn>, Error> {
        let mut taken = Vec::new();
        if self.own_fingerprint().is_none() {
            return Ok(taken);
        }
        let speakers = Speakers::find(&self.store)?;
        let runs = if speakers.0.is_empty() { Vec::new() } else { unarchived_runs(&self.store)? };
        for run in runs {
            let is_silent = speakers.about(&self.store, &run).next().is_none();
            if is_silent || steer::is_sealed(&self.store, &format::run_ref(&run)) {
                continue;
            }
            match self.opened(&run) {
                Ok(mut open) => taken.extend(self.take_from(&mut open, &speakers)?),
                Err(Denied::Refused(_)) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Ok(taken)
    }

    /// Takes in what others said of one run.
    pub fn take_in_on(&self, open: &mut OpenRun) -> Result<Vec<TakenIn>, Error> {
        self.take_from(open, &Speakers::find(&self.store)?)
    }

    fn take_from(&self, open: &mut OpenRun, speakers: &Speakers) -> Result<Vec<TakenIn>, Error> {
        let own = open.writer().signer.fingerprint();
        let conducts = [Role::Own, Role::Work].iter().any(|role| open.state.keys.has(&own, *role));
        if open.state.sealed || !conducts {
            return Ok(Vec::new());
        }
        let statements = statements(&self.store, open, speakers)?;
        if statements.is_empty() {
            return Ok(Vec::new());
        }
        let trust = self.options(&Trust::default(), &mut |_| ())?;
        let mut taken = Vec::new();
        for statement in statements {
            let told = TakenIn {
                run: open.id().clone(),
                by: statement.by.clone(),
                item: None,
                decision: None,
                document: None,
                refused: None,
            };
            let refused = refuse(open, &statement, &trust);
            taken.push(match &statement.what {
                What::Decided(said) => {
                    let refused =
                        refused.map_or_else(|| self.take_decision(open, &statement, said), |why| Ok(Some(why)))?;
                    TakenIn { item: Some(said.item.clone()), decision: Some(said.decision), refused, ..told }
                }
                What::Written(said) => {
                    let refused =
                        refused.map_or_else(|| self.take_document(open, &statement, said), |why| Ok(Some(why)))?;
                    TakenIn { document: Some(said.name.clone()), refused, ..told }
                }
            });
        }
        Ok(taken)
    }

    /// Puts a document that somebody wrote on the run; says why not.
    fn take_document(
        &self,
        open: &mut OpenRun,
        statement: &Statement,
        said: &LogWritten,
    ) -> Result<Option<String>, Error> {
        let latest = open.state.documents.latest(&said.name).map(|latest| latest.product.sha256);
        if said.previous.is_some() && said.previous != latest {
            return Ok(Some("it is to follow another revision than the one that is there".to_owned()));
        }
        let put = Put {
            name: said.name.clone(),
            product: Product { sha256: said.sha256, oid: said.oid, size: said.size },
            schema: said.schema.clone(),
            instead_of: said.previous.map(InsteadOf::Revision),
            said: Some((statement.actor.clone(), statement.commit.clone())),
        };
        if let Some(why) = self.examine(&put)? {
            return Ok(Some(why));
        }
        match document::put(open, &put, &self.schemas()) {
            Ok(_) => Ok(None),
            Err(document::Error::Run(error)) => unfit(error),
            Err(document::Error::Store(error)) => Err(error.into()),
            Err(why) => Ok(Some(why.to_string())),
        }
    }
}

impl Repository {
    /// Says why the bytes of a document that somebody wrote are not to become part of a run.
    fn examine(&self, put: &Put) -> Result<Option<String>, Error> {
        if self.store.kind(put.product.oid)?.is_some_and(|kind| !kind.is_blob()) {
            return Ok(Some("it names no bytes".to_owned()));
        }
        let mut copy = tempfile::tempfile().map_err(Error::Copy)?;
        match self.store.copy_blob(put.product.oid, &mut copy) {
            Ok(is) if is == (put.product.sha256, put.product.size) => {}
            Ok(_) => return Ok(Some("its bytes are not those that it names".to_owned())),
            Err(store::Error::Missing(_)) => return Ok(Some("its bytes did not come along".to_owned())),
            Err(other) => return Err(other.into()),
        }
        copy.rewind().map_err(Error::Copy)?;
        let passed = self.gate().check_reader(put.name.as_str(), &mut copy).map_err(Error::Copy)?;
        Ok(passed.err().map(|secret| secret.to_string()))
    }

    /// Records a decision; says why not.
    fn take_decision(
        &self,
        open: &mut OpenRun,
        statement: &Statement,
        said: &LogDecided,
    ) -> Result<Option<String>, Error> {
        if let Err(why) = self.message(said.message.as_deref()) {
            return Ok(Some(why.to_string()));
        }
        loop {
            let Some(at) = open.state.graph.position(&said.item) else {
                return Ok(Some(Illegal::UnknownItem(said.item.clone()).to_string()));
            };
            let event = ItemDecided {
                item: said.item.clone(),
                attempt: open.state.items[at].attempts,
                decision: said.decision,
                status: open.state.decided_status(at, said.decision),
                about: said.about.clone(),
                by: statement.by.clone(),
                message: said.message.clone(),
                said: Some(statement.commit.clone()),
            };
            // Before anything is staged, so that what cannot be taken in yet costs little, however often it is looked at.
            if let Err(why) = open.state.expect_decision(&event) {
                return Ok(Some(untaken(&why)));
            }
            match open.propose(&[NewEntry::Plain(Event::ItemDecided(event))]) {
                Ok(Some(_)) => return Ok(None),
                // Somebody else appended first.
                Ok(None) => {}
                Err(error) => return unfit(error),
            }
        }
    }
}

/// Says why a statement is not to become part of a run, whatever it says.
fn refuse(open: &OpenRun, statement: &Statement, trust: &Options) -> Option<String> {
    let (role, of_run) = match &statement.what {
        // The run has what a decision is about.
        What::Decided(said) => (Role::Approve, format::canonical(&said.about).len()),
        What::Written(_) => (Role::Document, 0),
    };
    if !open.state.keys.has(&statement.by, role) {
        return Some(format!("the key {} does not have the role `{role}`", statement.by));
    }
    if let Some(why) = trust.speaks_against(&statement.by, statement.at) {
        return Some(format!("the key {} {why}", statement.by));
    }
    let besides = statement.commit.len().saturating_sub(of_run);
    (besides > LONGEST)
        .then(|| format!("it has {besides} bytes besides what it is about; at most {LONGEST} are recorded"))
}

/// Says why an event was not recorded, where that lies in the event.
fn unfit(error: super::Error) -> Result<Option<String>, Error> {
    match error {
        super::Error::Illegal(why) => Ok(Some(untaken(&why))),
        super::Error::Chain(error @ chain::Error::TooLarge(..)) => Ok(Some(error.to_string())),
        other => Err(other.into()),
    }
}

fn untaken(why: &Illegal) -> String {
    match why {
        Illegal::OtherProducts(_) => "it is about other products than those that are there".to_owned(),
        why => why.to_string(),
    }
}

/// The fetched logs that say something of runs that somebody else conducts, each with its head and the tree there.
struct Speakers(Vec<(Oid, Oid)>);

impl Speakers {
    /// Finds them, once for however many runs. What stands in their trees says which they are.
    fn find(store: &Store) -> Result<Self, Error> {
        let mut speakers = Vec::new();
        for (name, tip) in refs::list(store, format::FETCHED_REFS)? {
            let is_log = Place::fetched_of(&name, Kind::Log).is_some();
            let Some(decoded) = is_log.then(|| chain::decode(store, tip).ok()).flatten() else { continue };
            let speaks = |folder| store.has_tree_at(decoded.tree, folder).unwrap_or(false);
            if [format::DECIDED, format::WRITTEN].into_iter().any(speaks) {
                speakers.push((tip, decoded.tree));
            }
        }
        Ok(Self(speakers))
    }

    /// Returns the heads of those that say something of a run.
    fn about<'s>(&'s self, store: &'s Store, run: &RunId) -> impl Iterator<Item = Oid> + 's {
        let folders = [format::DECIDED, format::WRITTEN].map(|folder| format!("{folder}/{}", format::log_path(run)));
        let speaks = move |tree| folders.iter().any(|folder| store.has_tree_at(tree, folder).unwrap_or(false));
        self.0.iter().filter(move |(_, tree)| speaks(*tree)).map(|(tip, _)| *tip)
    }
}

/// Returns what logs say of a run and was not taken in, in the order of the times that they claim: of several decisions of one key about
/// the same, the last, and of what a key wrote under one name, what came after the last that was taken in.
///
/// What was said before that is no word any more, wherever it still stands: another remote may have an older copy of the log.
fn statements(store: &Store, open: &OpenRun, speakers: &Speakers) -> Result<Vec<Statement>, Error> {
    let (mut statements, mut read) = (Vec::new(), BTreeSet::new());
    for tip in speakers.about(store, open.id()) {
        // What is not here says nothing: a fetch brings logs whole.
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
    let taken: BTreeSet<Digest> =
        statements.iter().filter(|one| open.state.was_said(&one.commit)).map(|one| one.said).collect();
    let (mut decided, mut written, mut seen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut last: Vec<Statement> = Vec::new();
    for statement in statements.into_iter().rev() {
        let was_said = taken.contains(&statement.said);
        if !seen.insert(statement.said) {
            continue;
        }
        let stands = match &statement.what {
            What::Decided(said) => {
                decided.insert((statement.by.clone(), said.item.clone(), format::canonical(&said.about)))
            }
            What::Written(said) => {
                let key = (statement.by.clone(), said.name.clone());
                if was_said { written.insert(key) } else { !written.contains(&key) }
            }
        };
        if stands && !was_said {
            last.push(statement);
        }
    }
    last.reverse();
    Ok(last)
}

/// Reads a commit of a log that says something of a run, with the hash of the entry 0 that it names.
fn statement(run: &RunId, raw: Vec<u8>) -> Option<(Statement, Digest)> {
    let commit = String::from_utf8(raw).ok()?;
    // Most entries of a log say something else, and a signature takes longer to check than that.
    if !commit.contains("\nlog.decided ") && !commit.contains("\nlog.written ") {
        return None;
    }
    let (decoded, by) = said(commit.as_bytes()).ok()?;
    if decoded.entry.about.run() != Some(run) {
        return None;
    }
    let Dated { at, event } = Dated::of(&decoded.entry);
    let (first, bytes, what) = match event {
        Event::LogDecided(said) => (said.first, format::canonical(&(&by, at, &said)), What::Decided(said)),
        Event::LogWritten(said) => (said.first, format::canonical(&(&by, at, &said)), What::Written(said)),
        _ => return None,
    };
    let said = Digest::of(&bytes);
    Some((Statement { by, actor: decoded.entry.actor, at, said, commit, what }, first))
}

/// Why nothing was taken in.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error(transparent)]
    Run(#[from] super::Error),
    #[error(transparent)]
    Target(#[from] super::target::Error),
    #[error("a document could not be copied to be looked at")]
    Copy(#[source] std::io::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Refs(#[from] refs::Error),
    #[error(transparent)]
    Trust(#[from] repository::trust::Error),
    #[error(transparent)]
    Repository(#[from] repository::Error),
}
