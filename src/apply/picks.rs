//! Creates the commits for `git cherry-pick`, one for each item, without a branch.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::git::merge::{self, Scratch};
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::run::query::VerifiedRun;

use super::message::{self, Message};
use super::parts::{self, Parts};
use super::{Error, Step};

/// The items to put onto `HEAD`.
#[derive(Clone, Copy)]
pub(super) struct Selection<'a> {
    pub(super) store: &'a Store,
    pub(super) scratch: &'a Scratch,
    pub(super) run: &'a VerifiedRun,
    pub(super) parts: &'a Parts,
    pub(super) head: Oid,
    /// The text of the commit; by default the name of its item.
    pub(super) message: Option<&'a Message>,
}

/// The commits to pick.
#[derive(Default)]
pub(super) struct Picks {
    /// The commits, in their order.
    pub(super) commits: Vec<Oid>,
    /// The items that `HEAD` already contains.
    pub(super) unchanged: Vec<Step>,
    /// The paths that the commits change.
    pub(super) touched: BTreeSet<PathBuf>,
    /// The tree with all of them, with conflict markers.
    pub(super) last: Option<Oid>,
}

/// Creates the commits.
///
/// Up to the first conflict, each is the commit that the branch gets. After it, an item that
/// changes no conflicting file is committed as its product. Any other will contain the user's
/// resolution, and its message says so.
pub(super) fn make(selection: &Selection<'_>) -> Result<Picks, Error> {
    let Selection { store, scratch, run, parts, head, message: own } = *selection;
    let mut picks = Picks::default();
    let mut open: BTreeSet<PathBuf> = BTreeSet::new();
    let (mut tree, mut tip) = (scratch.tree_of(head)?, head);
    for (nth, (at, part)) in parts.iter().enumerate().filter(|(_, (_, part))| part.is_chosen()) {
        let before = parts::before(scratch, run, parts, nth)?;
        let rests = scratch.changed(before, part.result())?.iter().any(|path| open.contains(Path::new(path)));
        let fits = if rests { None } else { parts::fits(scratch, run, parts, nth, tree)? };
        let (item, product, red) = (part.item().clone(), part.product(), run.state.items[*at].red);
        let resolved = fits.is_none() || part.is_cut();
        let to = fits.unwrap_or(part.result());
        let step = Step {
            item,
            product,
            tree: to,
            changed: true,
            folded: false,
            commit: None,
            red,
            judged: parts::judged(&run.state.items[*at], part.is_cut()),
            resolved,
            without_protected: part.is_cut(),
        };
        if fits == Some(tree) {
            picks.unchanged.push(Step { changed: false, ..step });
            continue;
        }
        let message = message::compose(&run.run, std::slice::from_ref(&step), own);
        let (from, parent) = match fits {
            Some(_) if open.is_empty() => (tree, tip),
            Some(_) => (tree, scratch.as_commit(tree, None)?),
            None => (before, scratch.as_commit(before, None)?),
        };
        tip = merge::unsigned(store, to, parent, &message).map_err(Error::Commit)?;
        picks.commits.push(tip);
        picks.touched.extend(scratch.changed(from, to)?.into_iter().map(PathBuf::from));
        tree = if let Some(fits) = fits {
            fits
        } else {
            let (merged, conflicts) = scratch.merge_with_marks(before, tree, to)?;
            open.extend(conflicts);
            merged
        };
        picks.last = Some(tree);
    }
    Ok(picks)
}
