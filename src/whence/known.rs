//! Verification results of the runs that commits may come from; each is computed once.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::apply::compose::Composer;
use crate::apply::{self, Step};
use crate::git::borrowed_repo::BorrowedRepo;
use crate::git::{history, store, verified_stream};
use crate::model::any_error::AnyError;
use crate::model::causes;
use crate::model::digest::Oid;
use crate::model::item_index::ItemIndex;
use crate::run::query::{VerifiedRun, target};
use crate::verify::Gate;

use super::index::{Patch, RunPlace};

/// The trust in a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It verifies, and all its keys are known.
    Proven,
    /// It verifies, but an unknown key signed it.
    #[serde(rename = "unknown-key")]
    Stranger(#[serde(skip)] String),
    /// It does not verify, or is distrusted.
    #[serde(rename = "not-verified")]
    Barred(#[serde(skip)] String),
}

/// A run after verification.
pub(super) struct Known {
    /// The place of the run.
    pub(super) at: RunPlace,
    /// The trust in it.
    pub(super) standing: Standing,
    /// The run, unless it was rejected.
    pub(super) run: Option<Rc<VerifiedRun>>,
    /// Notes for the reader.
    cautions: Vec<String>,
}

/// All verified runs.
pub(super) struct Runs<'g> {
    gate: &'g Gate<'g>,
    known: BTreeMap<String, Rc<Known>>,
    composers: BTreeMap<String, Result<Composer, String>>,
}

impl<'g> Runs<'g> {
    pub(super) fn new(gate: &'g Gate<'g>) -> Self {
        Self { gate, known: BTreeMap::new(), composers: BTreeMap::new() }
    }

    /// Verifies a run.
    pub(super) fn known(&mut self, place: &RunPlace) -> Rc<Known> {
        let gate = self.gate;
        Rc::clone(
            self.known
                .entry(place.reference.clone())
                .or_insert_with(|| Rc::new(judged(gate, place).unwrap_or_else(|why| Known::barred(place, why)))),
        )
    }

    /// Applies patches to a tree, run by run in the given order.
    pub(super) fn onto(&mut self, borrowed: &BorrowedRepo, patches: &[Patch], tree: Oid) -> Result<Fit, AnyError> {
        let mut groups: Vec<(&RunPlace, BTreeSet<ItemIndex>)> = Vec::new();
        for patch in patches {
            let place = &patch.record.at;
            let Some(run) = &self.known(place).run else { return Ok(Fit::Not) };
            let at = target::item(run, patch.item.as_str())?;
            match groups.iter_mut().find(|(one, _)| one.reference == place.reference) {
                Some((_, items)) => drop(items.insert(at)),
                None => groups.push((place, BTreeSet::from([at]))),
            }
        }
        let (mut placed, mut now) = (Vec::new(), tree);
        for (place, items) in groups {
            let composer = match self.composer(borrowed, place)? {
                Ok(composer) => composer,
                Err(why) => return Ok(Fit::Unable(why)),
            };
            let steps = match composer.onto(&items, now) {
                Ok(Some(steps)) => steps,
                Ok(None) => return Ok(Fit::Not),
                Err(error) => return self.failed(place, error),
            };
            now = steps.last().map_or(now, |step| step.tree);
            let known = self.known(place);
            placed.extend(steps.into_iter().map(|step| Placed { known: Rc::clone(&known), step }));
        }
        Ok(Fit::Placed(placed))
    }

    /// Returns an applier for the items of a run, or the reason why there is none.
    pub(super) fn composer(
        &mut self,
        borrowed: &BorrowedRepo,
        place: &RunPlace,
    ) -> Result<Result<&mut Composer, String>, AnyError> {
        if !self.composers.contains_key(&place.reference) {
            let composer = match self.known(place).run.clone() {
                None => Err("the run does not verify".to_owned()),
                Some(run) => match Composer::new(borrowed.store(), run) {
                    Ok(composer) => Ok(composer),
                    Err(error) => Err(self.failed(place, error)?.why()),
                },
            };
            self.composers.insert(place.reference.clone(), composer);
        }
        let composer = self.composers.get_mut(&place.reference).expect("it was put there, if it was not there");
        Ok(composer.as_mut().map_err(|why| why.clone()))
    }

    /// Missing bytes prove nothing against a commit. A run whose bytes differ from its record is
    /// rejected.
    fn failed(&mut self, place: &RunPlace, error: apply::Error) -> Result<Fit, AnyError> {
        let partial = history::is_partial(self.gate.store);
        match error {
            apply::Error::NoBase(_) | apply::Error::Store(store::Error::Missing(_)) => Ok(Fit::Unable(chain(&error))),
            apply::Error::Patch(..) | apply::Error::Git(_) | apply::Error::Merge(_) if partial => {
                Ok(Fit::Unable("what it is made of is not in this partial clone".to_owned()))
            }
            apply::Error::NoPatch(_) | apply::Error::Patch(..) => Ok(Fit::Not),
            apply::Error::Altered(..) => {
                self.bar(place, chain(&error));
                Ok(Fit::Not)
            }
            other => Err(other.into()),
        }
    }

    /// Revokes the trust in a run.
    fn bar(&mut self, place: &RunPlace, why: String) {
        self.known.insert(place.reference.clone(), Rc::new(Known::barred(place, why)));
    }

    /// Returns the notes about the runs that were used.
    pub(super) fn cautions(&self) -> impl Iterator<Item = &str> {
        let proven = self.known.values().filter(|known| known.standing == Standing::Proven);
        proven.flat_map(|known| &known.cautions).map(String::as_str)
    }

    /// Returns the recorded bytes of a patch, or `None` if they are missing.
    pub(super) fn bytes(&mut self, patch: &Patch) -> Option<Vec<u8>> {
        let place = &patch.record.at;
        let run = self.known(place).run.clone()?;
        match run.blob(&patch.product).read(self.gate.store) {
            Ok(bytes) => Some(bytes),
            Err(verified_stream::Error::Store(_)) => None,
            Err(altered) => {
                self.bar(place, chain(&altered));
                None
            }
        }
    }
}

/// The result of applying patches.
pub(super) enum Fit {
    /// They fit; the steps, in order.
    Placed(Vec<Placed>),
    /// They do not fit.
    Not,
    /// Unknown, because an object is missing.
    Unable(String),
}

impl Fit {
    /// Returns the resulting tree.
    pub(super) fn tree(&self) -> Option<Oid> {
        match self {
            Self::Placed(placed) => placed.last().map(|last| last.step.tree),
            Self::Not | Self::Unable(_) => None,
        }
    }

    /// Returns the steps; empty if the patches do not fit.
    pub(super) fn placed(self) -> Vec<Placed> {
        match self {
            Self::Placed(placed) => placed,
            Self::Not | Self::Unable(_) => Vec::new(),
        }
    }

    fn why(self) -> String {
        match self {
            Self::Unable(why) => why,
            Self::Placed(_) | Self::Not => "it does not fit".to_owned(),
        }
    }
}

/// An applied item.
pub(super) struct Placed {
    /// Its run.
    pub(super) known: Rc<Known>,
    /// The result.
    pub(super) step: Step,
}

fn judged(gate: &Gate<'_>, place: &RunPlace) -> Result<Known, String> {
    let admitted = gate.admit(&place.run, &place.reference).map_err(|barred| chain(&barred))?;
    let standing = match admitted.strangers.as_slice() {
        [] => Standing::Proven,
        keys => Standing::Stranger(keys.join(", ")),
    };
    let run = VerifiedRun::read(gate.store, &admitted).map_err(|error| chain(&error))?;
    let cautions = admitted.cautions.clone();
    Ok(Known { at: place.clone(), standing, run: Some(Rc::new(run)), cautions })
}

impl Known {
    fn barred(place: &RunPlace, why: String) -> Self {
        Self { at: place.clone(), standing: Standing::Barred(why), run: None, cautions: Vec::new() }
    }
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    causes::messages(error).join(": ")
}
