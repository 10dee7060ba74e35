//! The row `facts`: are the packet's claims about its branch, commits, runs, items and documents
//! true? Only this part reads a repository.

use std::collections::BTreeMap;

use crate::git::program;
use crate::git::store::Store;
use crate::git::{history, refs, work_tree};
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::name::{FilePath, RunId};
use crate::model::packet::Claims;
use crate::model::place::Place;
use crate::model::printable::written_out;
use crate::run::query::{VerifiedRun, View};
use crate::verify::Gate;

use super::quote::quoted;
use super::schema::listed;
use super::{Finding, Row, no_facts};

/// The maximum number of commits to look up.
const MOST_COMMITS: usize = 32;

/// The maximum number of displayed false facts.
const SHOWN: usize = 6;

/// The treatment of facts about a missing run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absent {
    /// They fail: the packet is for a reader with the run.
    Fails,
    /// They stay open: the packet came with a thread, which is shared without its runs.
    Open,
}

/// The results so far.
#[derive(Default)]
struct Found {
    holds: Vec<String>,
    fails: Vec<String>,
    open: Vec<String>,
    findings: Vec<Finding>,
}

/// Looks up a packet's claims here and in verified runs. Fetches nothing, and does not interpret
/// prose. `elsewhere` skips the branch.
pub fn look_up(claims: &Claims, gate: Option<&Gate<'_>>, absent: Absent, elsewhere: bool) -> Row {
    if claims.is_empty() {
        return no_facts();
    }
    let Some(gate) = gate else {
        return Row::new("facts", false, "could not be checked: this is not in a git repository");
    };
    let mut found = Found::default();
    if let Some(branch) = claims.branch.as_deref().filter(|_| !elsewhere)
        && let Err(error) = look_up_branch(gate.store, branch, &mut found)
    {
        found.fails.push(format!("the branch could not be looked up: {}", written_out(&error.to_string())));
    }
    if let Some(commits) = &claims.commits
        && let Err(error) = look_up_commits(gate.store, commits, &mut found)
    {
        found.fails.push(format!("commits could not be looked up: {}", written_out(&error.to_string())));
    }
    look_up_run(gate, claims, absent, &mut found);
    let passes = found.fails.is_empty();
    if passes && found.holds.is_empty() && !found.open.is_empty() {
        return Row::not_applicable("facts", format!("n/a ({})", found.open.join("; ")));
    }
    found.holds.append(&mut found.open);
    let (statements, all) = if passes { (&found.holds, usize::MAX) } else { (&found.fails, SHOWN) };
    let excerpt: Vec<String> = statements.iter().take(all).cloned().collect();
    let detail =
        if statements.is_empty() { "nothing is named".to_owned() } else { listed(&excerpt, statements.len(), "; ") };
    Row { findings: found.findings, ..Row::new("facts", passes, detail) }
}

/// Compares the branch of `HEAD`. Another one fails only if the packet's branch is here: in another
/// clone it may have another name, or be gone.
fn look_up_branch(store: &Store, branch: &str, found: &mut Found) -> Result<(), work_tree::Error> {
    let Some((_, head)) = work_tree::head(store)? else { return Ok(()) };
    let quoted_branch = quoted(branch);
    let Some(head) = head else {
        found.open.push(format!("HEAD is detached, so the branch {quoted_branch} was not compared"));
        return Ok(());
    };
    let head = head.strip_prefix(work_tree::BRANCHES).unwrap_or(&head);
    let place = format!("{}{branch}", work_tree::BRANCHES);
    if head == branch {
        found.holds.push(format!("HEAD is on the branch {quoted_branch}"));
    } else if store.git().args(["show-ref", "--verify", "--quiet", &place]).succeeds()? {
        let what = format!("HEAD is on the branch {}, not {quoted_branch}", quoted(head));
        found.fails.push(what.clone());
        found.findings.push(Finding { rule: "F1", field: "branch".into(), what });
    } else {
        found.open.push(format!("the branch {quoted_branch} is not here"));
    }
    Ok(())
}

fn look_up_commits(store: &Store, commits: &[String], found: &mut Found) -> Result<(), work_tree::Error> {
    if commits.len() > MOST_COMMITS {
        found
            .fails
            .push(format!("{} commits are named, more than the {MOST_COMMITS} that are looked up", commits.len()));
        return Ok(());
    }
    let mut here: Vec<Oid> = Vec::new();
    for id in commits {
        // Only ids, because a revision like `HEAD~2` changes its meaning, and an option is
        // dangerous.
        if !((4..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit())) {
            found.fails.push(format!("{} is no commit id", quoted(id)));
            continue;
        }
        match commit(store, id)? {
            Some(oid) => here.push(oid),
            None => found.fails.push(format!("commit {id} is not in this repository")),
        }
    }
    if here.len() == commits.len() && !here.is_empty() {
        found.holds.push(if here.len() == 1 {
            "1 commit exists".into()
        } else {
            format!("{} commits exist", here.len())
        });
    }
    distance(store, &here, found)
}

/// Resolves an id or its prefix to a commit.
fn commit(store: &Store, id: &str) -> Result<Option<Oid>, program::Error> {
    let revision = format!("{id}^{{commit}}");
    let call = store.git().env("GIT_NO_LAZY_FETCH", "1").args(["rev-parse", "--verify", "--quiet", &revision]);
    let oid: Option<Oid> = match call.line() {
        Ok(line) => line.parse().ok(),
        Err(program::Error::Failed { .. }) => None,
        Err(other) => return Err(other),
    };
    // A branch may have the name of an abbreviated id, and git accepts a full id unchecked.
    Ok(oid.filter(|oid| oid.to_string().starts_with(&id.to_ascii_lowercase()) && store.contains(*oid)))
}

/// Formats how far `HEAD` has moved since the nearest commit, and which commits are not its
/// ancestors.
fn distance(store: &Store, commits: &[Oid], found: &mut Found) -> Result<(), work_tree::Error> {
    let Some((head, _)) = work_tree::head(store)? else { return Ok(()) };
    let mut nearest: Option<(u64, Oid)> = None;
    for oid in commits {
        let id = oid.to_string();
        if !store.git().args(["merge-base", "--is-ancestor", &id, &head.to_string()]).succeeds()? {
            found.holds.push(format!("{} is not in the history of HEAD", short(*oid)));
            continue;
        }
        let count = store.git().args(["rev-list", "--count", &format!("{id}..{head}")]).line()?;
        let count = count.parse().unwrap_or(u64::MAX);
        if nearest.is_none_or(|(least, _)| count < least) {
            nearest = Some((count, *oid));
        }
    }
    found.holds.extend(nearest.map(|(count, oid)| match count {
        0 => format!("HEAD is still at {}", short(oid)),
        1 => format!("HEAD has moved 1 commit since {}", short(oid)),
        _ => format!("HEAD has moved {count} commits since {}", short(oid)),
    }));
    Ok(())
}

fn short(oid: Oid) -> String {
    oid.0.to_hex_with_len(7).to_string()
}

fn look_up_run(gate: &Gate<'_>, claims: &Claims, absent: Absent, found: &mut Found) {
    let Some(run_name) = &claims.run else {
        for (what, some) in [("items", claims.items.is_some()), ("documents", claims.documents.is_some())] {
            if some {
                found.fails.push(format!("{what} are named, and no run"));
            }
        }
        return;
    };
    let view = match RunId::parse(run_name).map_err(|_| Unusable::Absent).and_then(|run| vetted(gate, &run)) {
        Ok((view, cautions)) => {
            found.holds.push(format!("run {} exists", quoted(run_name)));
            found.holds.extend(cautions.iter().map(|caution| written_out(caution)));
            view
        }
        Err(Unusable::Absent) if absent == Absent::Open => {
            return found.open.push(format!("the run {} is not here, so nothing was checked of it", quoted(run_name)));
        }
        Err(Unusable::Absent) => return found.fails.push(format!("there is no run {} here", quoted(run_name))),
        Err(Unusable::Said(why)) => return found.fails.push(written_out(&why)),
    };
    if let Some(items) = &claims.items {
        look_up_items(&view, items, found);
    }
    for (name, digest) in claims.documents.iter().flatten() {
        look_up_document(&view, name, digest.as_deref(), found);
    }
}

/// The reason why a run provides no facts.
enum Unusable {
    /// It is missing.
    Absent,
    /// The data under its name proves nothing.
    Said(String),
}

/// Verifies a run, with notes for its reader: ours, else the only fetched one.
fn vetted(gate: &Gate<'_>, run: &RunId) -> Result<(VerifiedRun, Vec<String>), Unusable> {
    let reference = find(gate.store, run).map_err(|error| unusable(&error))?;
    let reference = match reference.as_slice() {
        [] => return Err(Unusable::Absent),
        [reference] => reference,
        places => return Err(several(places, run)),
    };
    let admitted = gate.admit_whole(run, reference).map_err(|error| unusable(&error))?;
    let view = VerifiedRun::read(gate.store, &admitted).map_err(|error| unusable(&error))?;
    Ok((view, admitted.cautions.clone()))
}

fn several(places: &[String], run: &RunId) -> Unusable {
    let places: Vec<&str> = places.iter().filter_map(|name| remote(name)).collect();
    Unusable::Said(format!("there are different runs {:?} from {}", run.as_str(), places.join(" and ")))
}

fn unusable(error: &dyn std::error::Error) -> Unusable {
    Unusable::Said(error.to_string())
}

/// Finds the ref of a run: our own, else the fetched one that includes all others, else all of
/// them.
fn find(store: &Store, run: &RunId) -> Result<Vec<String>, refs::Error> {
    let own = format::run_ref(run);
    if refs::read(store, &own)?.is_some() {
        return Ok(vec![own]);
    }
    let fetched = refs::fetched_at(store, &Place::of_run(run))?;
    // One remote may have more entries of the same chain.
    let furthest = fetched.iter().find(|(_, new)| fetched.iter().all(|(_, old)| history::goes_on(store, *old, *new)));
    Ok(match furthest {
        Some((name, _)) => vec![name.clone()],
        None => fetched.into_iter().map(|(name, _)| name).collect(),
    })
}

/// Returns the remote of a fetched run's ref.
fn remote(reference: &str) -> Option<&str> {
    Place::fetched(reference).map(|(remote, _)| remote)
}

fn look_up_items(view: &View, items: &BTreeMap<String, String>, found: &mut Found) {
    let before = found.fails.len();
    let known: BTreeMap<&str, ItemIndex> =
        view.state.graph.items().indexed().map(|(at, item)| (item.id.as_str(), at)).collect();
    for (id, claimed) in items {
        match known.get(id.as_str()).map(|at| view.state.status(*at)) {
            Some(status) if status == claimed => {}
            Some(status) => found.fails.push(format!("item {} is {status}, not {}", quoted(id), quoted(claimed))),
            None => found.fails.push(format!("the run has no item {}", quoted(id))),
        }
    }
    if found.fails.len() == before {
        let done = items.values().all(|status| status == "done");
        let s = if items.len() == 1 { " is" } else { "s are" };
        let red_items = items.keys().filter(|id| known.get(id.as_str()).is_some_and(|at| view.state.items[*at].red));
        let red = match red_items.count() {
            0 => String::new(),
            red => format!(", {red} of them red"),
        };
        found.holds.push(format!("{} item{s} {}{red}", items.len(), if done { "done" } else { "as stated" }));
    }
}

fn look_up_document(view: &View, name: &str, digest: Option<&str>, found: &mut Found) {
    let latest = FilePath::parse_document(name).ok();
    let Some(latest) = latest.and_then(|document| view.state.documents.latest(&document)) else {
        return found.fails.push(format!("the run has no document {}", quoted(name)));
    };
    let actual = latest.product.sha256;
    match digest {
        None => found.holds.push(format!("document {} exists", quoted(name))),
        Some(claimed) if actual.to_string() == claimed || actual.hex() == claimed => {
            found.holds.push(format!("document {} has that hash", quoted(name)));
        }
        Some(claimed) => found.fails.push(format!("document {} is {actual}, not {}", quoted(name), quoted(claimed))),
    }
}
