//! The origin of one commit: items, a false claim, or a person.
//!
//! The items that the message names are checked first, because they are the likeliest; they are not
//! trusted. The commit's tree and its parent's decide.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use crate::git::borrowed_repo::BorrowedRepo;
use crate::git::history;
use crate::git::program;
use crate::git::store::Store;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::words::words;
use crate::repository::remote_record;
use crate::verify::{Gate, HOW_TO_KNOW};

use super::commit::{Claim, Commit};
use super::diff::Diff;
use super::index::{Index, Patch};
use super::known::{Fit, Placed, Runs, Standing};
use super::words;

/// The maximum size of a commit's change to compare line by line.
const LARGEST: usize = 64 << 20;

words! {
    as_str
    /// The verdict on a commit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
    #[serde(rename_all = "kebab-case")]
    pub enum Verdict {
        /// Exactly the product of items; proven.
        Product = "product",
        /// The product of items, but the run does not verify or an unknown key signed it.
        Unproven = "unproven",
        /// It claims to be the product of an item and is not, or not exactly.
        Changed = "changed",
        /// It names a run that is not in this repository.
        UnknownRun = "unknown-run",
        /// It makes no claim, and no known item made it.
        Person = "person",
        /// Unknown.
        Unclear = "unclear",
    }
}

/// The kind of match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The patches, applied to the commit's parent, make exactly its tree.
    Tree,
    /// It has the patch's id and lines, possibly at other places of the files.
    PatchId,
}

/// The result for a commit.
pub(super) struct Finding {
    /// The commit.
    pub(super) commit: Commit,
    /// The verdict.
    pub(super) verdict: Verdict,
    /// The kind of match.
    pub(super) how: Option<How>,
    /// The reason, in one line.
    pub(super) detail: String,
    /// The items whose patches it consists of, in order.
    pub(super) origins: Vec<Origin>,
    /// Other items that each made the same change.
    pub(super) others: Vec<Origin>,
    /// The trees after each item with an effect, if the patches were applied to its parent.
    pub(super) steps: Vec<(Origin, Oid)>,
}

/// The item that made a patch, and the trust in its run.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) patch: Patch,
    pub(super) standing: Standing,
}

/// The evidence to compare commits with.
pub(super) struct Attribution<'a> {
    pub(super) store: &'a Store,
    pub(super) borrowed: BorrowedRepo,
    pub(super) index: Index,
    pub(super) runs: Runs<'a>,
    found: BTreeMap<Oid, Rc<Finding>>,
}

/// A commit and its parent's tree.
pub(super) struct Comparison {
    pub(super) commit: Commit,
    pub(super) before: Oid,
    pub(super) change: Option<Rc<Change>>,
}

/// A commit's changes.
pub(super) struct Change {
    pub(super) id: Option<String>,
    pub(super) diff: Diff,
}

impl<'a> Attribution<'a> {
    pub(super) fn new(store: &'a Store, gate: &'a Gate<'a>) -> Result<Self, AnyError> {
        let (borrowed, index) = (BorrowedRepo::new(store)?, Index::new(store)?);
        Ok(Self { store, borrowed, index, runs: Runs::new(gate), found: BTreeMap::new() })
    }

    /// Returns notes about the runs that were used.
    pub(super) fn cautions(&self) -> impl Iterator<Item = String> {
        self.index.complaints().chain(self.runs.cautions().map(str::to_owned))
    }

    /// Attributes several commits.
    pub(super) fn attribute_all(&mut self, commits: &[Oid]) -> Result<Vec<Rc<Finding>>, AnyError> {
        commits.iter().map(|commit| self.attribute(*commit)).collect()
    }

    /// Attributes a commit.
    pub(super) fn attribute(&mut self, oid: Oid) -> Result<Rc<Finding>, AnyError> {
        if let Some(found) = self.found.get(&oid) {
            return Ok(Rc::clone(found));
        }
        let commit = Commit::read(self.store, oid)?;
        let found = match self.find_origin(commit.clone()) {
            // In a partial clone, any failure of git is due to missing objects.
            Err(error) if error.is::<program::Error>() && history::is_partial(self.store) => {
                Finding::plain(commit, Verdict::Unclear, "what it changes is not in this partial clone")
            }
            other => other?,
        };
        let found = Rc::new(found);
        self.found.insert(oid, Rc::clone(&found));
        Ok(found)
    }

    fn find_origin(&mut self, commit: Commit) -> Result<Finding, AnyError> {
        let before = match commit.parents.first() {
            None => self.store.empty_tree(),
            Some(parent) if self.store.contains(*parent) => Commit::read(self.store, *parent)?.tree,
            Some(_) => return Ok(Finding::plain(commit, Verdict::Unclear, "its parent is not in this repository")),
        };
        let mut compared = Comparison { commit, before, change: None };
        if !compared.commit.claims.is_empty() {
            return self.claimed(&mut compared);
        }
        if compared.commit.tree == before {
            return Ok(Finding::plain(compared.commit, Verdict::Person, "it changes nothing"));
        }
        Ok(match self.search(&mut compared)? {
            Some(found) => found,
            None if compared.commit.parents.len() > 1 => {
                Finding::plain(compared.commit, Verdict::Person, "a merge that is no item's of any run here")
            }
            None if compared.change.is_none() => {
                Finding::plain(compared.commit, Verdict::Unclear, "it changes too much to be looked through")
            }
            None if !compared.commit.resolved.is_empty() => {
                let items = compared.commit.resolved.join(" and ");
                let detail = format!("no item handed this over; its author says to have resolved conflicts of {items}");
                Finding::plain(compared.commit, Verdict::Person, &detail)
            }
            None => Finding::plain(compared.commit, Verdict::Person, "no item of any run here handed this over"),
        })
    }

    /// Checks a commit against the items that its message names.
    fn claimed(&mut self, compared: &mut Comparison) -> Result<Finding, AnyError> {
        let mut origins: Vec<Origin> = Vec::new();
        for claim in compared.commit.claims.clone() {
            match self.resolve(&claim) {
                Ok(origin) => origins.push(origin),
                Err((Verdict::Changed, why)) => {
                    let why = format!("it says that it is {}, but {why}", describe_claim(&claim));
                    return self.report_false_claim(compared, &why);
                }
                Err((verdict, why)) => return Ok(Finding::plain(compared.commit.clone(), verdict, &why)),
            }
        }
        if compared.commit.tree == compared.before {
            let why = "it says that it is what an item handed over, and changes nothing";
            return Ok(Finding::plain(compared.commit.clone(), Verdict::Changed, why));
        }
        let patches: Vec<Patch> = origins.iter().map(|origin| origin.patch.clone()).collect();
        let fit = self.runs.onto(&self.borrowed, &patches, compared.before)?;
        for origin in &mut origins {
            origin.standing = self.runs.known(&origin.patch.record.at).standing.clone();
        }
        if let Some(Standing::Barred(why)) = origins.iter().map(|origin| &origin.standing).max() {
            let detail = why.clone();
            let found = Finding::plain(compared.commit.clone(), Verdict::Unproven, &detail);
            return Ok(Finding { origins, ..found });
        }
        if fit.tree() == Some(compared.commit.tree) {
            return Ok(Finding::made(compared, &origins, fit.placed()));
        }
        if let [origin] = origins.as_slice()
            && self.is_like(compared, &origin.patch)? == Some(true)
        {
            return Ok(Finding::like(compared, origins));
        }
        let found = self.search(compared)?.filter(|found| found.how.is_some());
        if let Some(found) = found
            && origins.iter().all(|claimed| found.is_made_by(claimed))
        {
            return Ok(found);
        }
        let names: Vec<String> = origins.iter().map(Origin::name).collect();
        let mut detail = format!("it says that it is what {} handed over, and ", names.join(" and "));
        let verdict = if matches!(fit, Fit::Unable(_)) { Verdict::Unclear } else { Verdict::Changed };
        match (&fit, fit.tree()) {
            (Fit::Unable(why), _) => detail.push_str(why),
            (_, None) => detail.push_str("that does not fit its parent"),
            (_, Some(tree)) => detail.push_str(&self.differing(tree, compared.commit.tree)?),
        }
        let finding = Finding::plain(compared.commit.clone(), verdict, &detail);
        Ok(Finding { origins, ..finding })
    }

    /// Reports that a commit's claim is false, with its actual origin if any.
    fn report_false_claim(&mut self, compared: &mut Comparison, why: &str) -> Result<Finding, AnyError> {
        let found = if compared.commit.tree == compared.before { None } else { self.search(compared)? };
        let is = found.filter(|found| found.how.is_some()).map(|found| {
            let names: Vec<String> = found.origins.iter().map(Origin::name).collect();
            format!("; what it holds was handed over by {}", names.join(" and "))
        });
        let detail = format!("{why}{}", is.unwrap_or_default());
        Ok(Finding::plain(compared.commit.clone(), Verdict::Changed, &detail))
    }

    /// Finds the patch that a message names, in the copy of the run with the most trust.
    fn resolve(&mut self, claim: &Claim) -> Result<Origin, (Verdict, String)> {
        let runs = self.index.runs_with_name(self.store, &claim.run);
        if runs.is_empty() {
            let refused = remote_record::refusals(self.store, &claim.run).into_iter();
            let refused = refused.map(|(remote, why)| format!("; the last fetch from {remote} refused it: {why}"));
            let why = format!("it names the run {:?}, which is not here{}", claim.run, refused.collect::<String>());
            return Err((Verdict::UnknownRun, why));
        }
        let Some(item) = &claim.item else {
            return Err((Verdict::Changed, "it names no item of it".to_owned()));
        };
        let mut found: Vec<Origin> = Vec::new();
        for record in &runs {
            let patch = record.patches.iter().find(|(id, _)| id.as_str() == item);
            let patch =
                patch.filter(|(_, is)| claim.product.as_ref().is_none_or(|claimed| *claimed == is.sha256.to_string()));
            if let Some((id, product)) = patch {
                let built = Patch { record: Rc::clone(record), item: id.clone(), product: *product };
                found.push(self.origin(built));
            }
        }
        found.sort_by(|a, b| a.standing.cmp(&b.standing));
        if let Some(best) = found.into_iter().next() {
            return Ok(best);
        }
        match runs.iter().find_map(|record| record.unreadable.clone()) {
            Some(why) => {
                Err((Verdict::Unproven, format!("it names the run {:?}, which cannot be read: {why}", claim.run)))
            }
            None => Err((Verdict::Changed, "the run has no such item, or it handed over another patch".to_owned())),
        }
    }

    /// Returns the origin of a patch, with the trust in its run.
    pub(super) fn origin(&mut self, patch: Patch) -> Origin {
        let standing = self.runs.known(&patch.record.at).standing.clone();
        Origin { patch, standing }
    }

    /// Returns a commit's changes, or `None` if they are too large.
    pub(super) fn change(&mut self, compared: &mut Comparison) -> Result<Option<Rc<Change>>, AnyError> {
        if compared.change.is_none() {
            let (oid, tree) = (compared.commit.oid, compared.commit.tree);
            if let Some(patch) = self.borrowed.patch(compared.before, tree, LARGEST)? {
                let id = self.borrowed.patch_ids([(oid, patch.as_slice())])?.into_iter().next().map(|(_, id)| id);
                compared.change = Some(Rc::new(Change { id, diff: Diff::read(&patch) }));
            }
        }
        Ok(compared.change.clone())
    }

    /// Compares patch ids: `Some(true)` if the lines are equal too, `None` if the ids differ.
    pub(super) fn is_like(&mut self, compared: &mut Comparison, patch: &Patch) -> Result<Option<bool>, AnyError> {
        let Some(change) = self.change(compared)? else { return Ok(None) };
        let bytes = match self.runs.bytes(patch) {
            Some(bytes) => bytes,
            // A rejected run may be compared, but is not trusted.
            None => match self.store.read_blob_of(patch.product.oid, LARGEST as u64) {
                Ok(bytes) => bytes,
                Err(_) => return Ok(None),
            },
        };
        let id =
            self.borrowed.patch_ids([(compared.commit.oid, bytes.as_slice())])?.into_iter().next().map(|(_, id)| id);
        Ok((id.is_some() && id == change.id).then(|| Diff::read(&bytes).verbatim == change.diff.verbatim))
    }

    /// Formats the files and lines in which a commit differs from its parent with some patches.
    fn differing(&self, made: Oid, is: Oid) -> Result<String, AnyError> {
        Ok(match self.borrowed.patch(made, is, LARGEST)? {
            Some(patch) => format!("differs from it in {}", words::changed(&Diff::read(&patch))),
            None => "differs from it in more than can be listed".to_owned(),
        })
    }
}

impl Finding {
    pub(super) fn plain(commit: Commit, verdict: Verdict, detail: &str) -> Self {
        let (origins, others, steps) = (Vec::new(), Vec::new(), Vec::new());
        Self { commit, verdict, how: None, detail: detail.to_owned(), origins, others, steps }
    }

    /// Reports that some patches make the commit's tree, without those that have no effect.
    pub(super) fn made(compared: &Comparison, origins: &[Origin], placed: Vec<Placed>) -> Self {
        let mut steps = Vec::new();
        for Placed { known, step } in placed.into_iter().filter(|placed| placed.step.changed) {
            steps.extend(
                origins
                    .iter()
                    .find(|origin| {
                        origin.patch.record.at.reference == known.at.reference && origin.patch.item == step.item
                    })
                    .map(|origin| (origin.clone(), step.tree)),
            );
        }
        let made: Vec<Origin> = steps.iter().map(|(origin, _)| origin.clone()).collect();
        let names: Vec<String> = made.iter().map(Origin::name).collect();
        let detail = words::make_exactly(&names);
        let found = Self::by(compared, made, How::Tree, detail);
        Self { steps, ..found }
    }

    /// Reports that a commit has the lines of a patch.
    pub(super) fn like(compared: &Comparison, origins: Vec<Origin>) -> Self {
        let names: Vec<String> = origins.iter().map(Origin::name).collect();
        let detail = format!("it has the patch id of {}, and its very lines", words::patches(&names));
        Self::by(compared, origins, How::PatchId, detail)
    }

    fn by(compared: &Comparison, origins: Vec<Origin>, how: How, detail: String) -> Self {
        let (verdict, detail) = match origins.iter().map(|origin| &origin.standing).max() {
            None | Some(Standing::Proven) => (Verdict::Product, detail),
            Some(Standing::Stranger(key)) => (
                Verdict::Unproven,
                format!("{detail}, but the run is signed with {key}, not known to you; {HOW_TO_KNOW}"),
            ),
            Some(Standing::Barred(why)) => (Verdict::Unproven, format!("{detail}, but {why}")),
        };
        Self { origins, how: Some(how), ..Self::plain(compared.commit.clone(), verdict, &detail) }
    }

    fn is_made_by(&self, claimed: &Origin) -> bool {
        self.origins.iter().chain(&self.others).any(|origin| origin.patch.is(&claimed.patch))
    }
}

impl Origin {
    /// Formats the item for messages.
    pub(super) fn name(&self) -> String {
        let at = &self.patch.record.at;
        let remote = at.remote.as_ref().map(|remote| format!("{remote}/")).unwrap_or_default();
        format!("{remote}{}/{}", at.run, self.patch.item)
    }
}

impl Patch {
    /// Returns true if both are the same item, possibly in two copies of the run.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.record.first == other.record.first
            && self.record.at.run == other.record.at.run
            && self.item == other.item
            && self.product.sha256 == other.product.sha256
    }
}

fn describe_claim(claim: &Claim) -> String {
    match &claim.item {
        Some(item) => format!("what {item:?} of the run {:?} handed over", claim.run),
        None => format!("of the run {:?}", claim.run),
    }
}
