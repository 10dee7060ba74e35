//! What verification says of the runs that somebody's commits may come from. Each is asked about once.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::apply::compose::Composer;
use crate::apply::{self, Step};
use crate::git::aside::Aside;
use crate::git::checked;
use crate::model::causes;
use crate::model::digest::Oid;
use crate::run::{Vetted, target};
use crate::verify::Gate;

use super::Error;
use super::index::{Lying, Patch};

/// What can be said on the word of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It verifies, and whoever asks knows every key that signed it.
    Proven,
    /// It verifies, and is signed by a key that is not known here: by anybody.
    Stranger(String),
    /// It does not verify, or is not trusted.
    Barred(String),
}

/// A run that was held against all that is known.
pub(super) struct Known {
    /// Where it lies.
    pub(super) at: Lying,
    /// What its word is worth.
    pub(super) standing: Standing,
    /// The run, unless it is barred.
    pub(super) run: Option<Rc<Vetted>>,
}

/// All of them.
pub(super) struct Runs<'g> {
    gate: &'g Gate<'g>,
    known: BTreeMap<String, Rc<Known>>,
    composers: BTreeMap<String, Option<Composer>>,
}

impl<'g> Runs<'g> {
    pub(super) fn new(gate: &'g Gate<'g>) -> Self {
        Self { gate, known: BTreeMap::new(), composers: BTreeMap::new() }
    }

    /// Takes a run through the gate.
    pub(super) fn known(&mut self, lying: &Lying) -> Rc<Known> {
        let gate = self.gate;
        let ask = || {
            let (standing, run) = match judged(gate, lying) {
                Ok((standing, run)) => (standing, Some(Rc::new(run))),
                Err(why) => (Standing::Barred(why), None),
            };
            Rc::new(Known { at: lying.clone(), standing, run })
        };
        Rc::clone(self.known.entry(lying.reference.clone()).or_insert_with(ask))
    }

    /// Puts patches onto a tree, run by run in the order in which they are named; none where they do not fit, or cannot be put anywhere.
    pub(super) fn onto(&mut self, aside: &Aside, patches: &[Patch], tree: Oid) -> Result<Option<Vec<Placed>>, Error> {
        let mut groups: Vec<(&Lying, BTreeSet<usize>)> = Vec::new();
        for patch in patches {
            let lying = &patch.told.at;
            let Some(run) = &self.known(lying).run else { return Ok(None) };
            let at = target::item(run, patch.item.as_str())?;
            match groups.iter_mut().find(|(one, _)| one.reference == lying.reference) {
                Some((_, items)) => drop(items.insert(at)),
                None => groups.push((lying, BTreeSet::from([at]))),
            }
        }
        let (mut placed, mut now) = (Vec::new(), tree);
        for (lying, items) in groups {
            let Some(composer) = self.composer(aside, lying)? else { return Ok(None) };
            let steps = match composer.onto(&items, now) {
                Ok(Some(steps)) => steps,
                Ok(None) => return Ok(None),
                Err(error) => return self.missing(lying, error),
            };
            now = steps.last().map_or(now, |step| step.tree);
            let known = self.known(lying);
            placed.extend(steps.into_iter().map(|step| Placed { known: Rc::clone(&known), step }));
        }
        Ok(Some(placed))
    }

    /// Returns what puts the items of a run onto trees; none where its base is not here.
    pub(super) fn composer(&mut self, aside: &Aside, lying: &Lying) -> Result<Option<&mut Composer>, Error> {
        if !self.composers.contains_key(&lying.reference) {
            let run = self.known(lying).run.clone();
            let composer = match run.map(|run| Composer::new(aside.store(), run)) {
                None => None,
                Some(Ok(composer)) => Some(composer),
                Some(Err(error)) => self.missing(lying, error)?,
            };
            self.composers.insert(lying.reference.clone(), composer);
        }
        Ok(self.composers.get_mut(&lying.reference).and_then(Option::as_mut))
    }

    /// What is only not here is nothing to hold a commit against; a run whose bytes are not those that it recorded is barred.
    fn missing<T>(&mut self, lying: &Lying, error: apply::Error) -> Result<Option<T>, Error> {
        match error {
            apply::Error::NoBase(_) | apply::Error::NoPatch(_) | apply::Error::Patch(..) => Ok(None),
            apply::Error::Altered(..) => {
                self.bar(lying, chain(&error));
                Ok(None)
            }
            other => Err(other.into()),
        }
    }

    /// Takes back what was said for a run.
    fn bar(&mut self, lying: &Lying, why: String) {
        let barred = Known { at: lying.clone(), standing: Standing::Barred(why), run: None };
        self.known.insert(lying.reference.clone(), Rc::new(barred));
    }

    /// Returns the bytes of a patch, as the run that is let through recorded them; none where they are not here.
    pub(super) fn bytes(&mut self, patch: &Patch) -> Option<Vec<u8>> {
        let lying = &patch.told.at;
        let run = self.known(lying).run.clone()?;
        match run.product(patch.product.oid).that_is(patch.product.sha256).read(self.gate.store) {
            Ok(bytes) => Some(bytes),
            Err(checked::Error::Store(_)) => None,
            Err(altered) => {
                self.bar(lying, chain(&altered));
                None
            }
        }
    }
}

/// An item whose patch was put onto a tree.
pub(super) struct Placed {
    /// Its run.
    pub(super) known: Rc<Known>,
    /// What came of it.
    pub(super) step: Step,
}

fn judged(gate: &Gate<'_>, lying: &Lying) -> Result<(Standing, Vetted), String> {
    let admitted = gate.admit(&lying.run, &lying.reference).map_err(|barred| chain(&barred))?;
    let standing = match admitted.strangers() {
        [] => Standing::Proven,
        keys => Standing::Stranger(keys.join(", ")),
    };
    Ok((standing, Vetted::read(gate.store, &admitted).map_err(|error| chain(&error))?))
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    causes::chain(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
