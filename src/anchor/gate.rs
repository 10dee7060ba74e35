//! The gate in front of what runs hold, kept with the keys, the logs and the anchors that a repository goes by.

use std::collections::BTreeMap;

use crate::model::name::RunId;
use crate::repository::{Repository, Trust, trust};
use crate::run::piece::{self, PieceName};
use crate::run::{self, Blob, Target, Vetted, target};
use crate::verify::{self, Admitted, AtHand, Barred, Gate, LOCAL, Logs, Options, Question, nobody};

use super::{Anchor, Means, SettingError, ask_all, read};

/// What a person may insist on.
#[derive(Clone, Copy, Default)]
pub struct Terms {
    /// Whether a run is taken although it is signed by a key that is not trusted; never one that was tampered with.
    pub accept_untrusted: bool,
}

/// What the gate is kept with.
pub struct Gatekeeper<'a> {
    repository: &'a Repository,
    terms: Terms,
    options: Options,
    logs: Logs,
    /// What is asked, and how it is reached; nobody, for the check of packets.
    outside: Option<(Vec<Anchor>, Means)>,
}

impl Repository {
    /// Returns the anchors of some names; all that are configured where none is named. `local` is always there and needs no asking.
    pub fn anchors(&self, names: &[String]) -> Result<Vec<Anchor>, Error> {
        let configured = &self.config.anchors;
        let outside = names.iter().filter(|name| *name != LOCAL);
        if let Some(unknown) = outside.clone().find(|name| !configured.contains_key(*name)) {
            return Err(Error::Unknown(unknown.clone()));
        }
        let wanted = configured.iter().filter(|(name, _)| names.is_empty() || outside.clone().any(|one| one == *name));
        wanted.map(|(name, settings)| self.anchor(name, settings)).collect()
    }

    /// Reads one anchor's settings; no file inside the work tree says whom to trust about it.
    pub fn anchor(&self, name: &str, settings: &BTreeMap<String, String>) -> Result<Anchor, Error> {
        let mut anchor = read(name, settings)?;
        if let Some(file) = anchor.trust_file() {
            *file = self.outside_of(&format!("handoff.anchor.{name}.ca"), file)?;
        }
        Ok(anchor)
    }

    /// Keeps the gate with the keys, the logs and the anchors that `verify` goes by. Nobody is asked for a password.
    ///
    /// `warn` is told of files that are ignored.
    pub fn gatekeeper(&self, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<Gatekeeper<'_>, Error> {
        let anchors = self.anchors(&[])?;
        let mut means = Means::of(self);
        means.reach.prompt = false;
        Ok(Gatekeeper { outside: Some((anchors, means)), ..self.gatekeeper_at_hand(terms, warn)? })
    }

    /// Keeps the gate with the logs at hand alone, for the check of packets, which reaches nobody.
    pub fn gatekeeper_at_hand(&self, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<Gatekeeper<'_>, Error> {
        let options = self.options(&Trust::default(), warn)?;
        Ok(Gatekeeper { repository: self, terms, options, logs: Logs::read(&self.store)?, outside: None })
    }

    /// Takes a run through the gate; `warn` is told what its reader should know of it.
    pub fn vetted(&self, target: &Target, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<Vetted, Error> {
        let keeper = self.gatekeeper(terms, warn)?;
        keeper.open(|gate| let_in(gate, &gate.admit(&target.run, &target.reference)?, warn))
    }

    /// Takes a run through the gate like [`Repository::vetted`], if it is intact to the last byte of its products.
    pub fn vetted_whole(&self, target: &Target, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<Vetted, Error> {
        let keeper = self.gatekeeper(terms, warn)?;
        keeper.open(|gate| let_in(gate, &gate.admit_intact(&target.run, &target.reference)?, warn))
    }

    /// Takes a piece out of a run, as [`piece`] says what it is called; `warn` is told what its reader should know of the run.
    pub fn piece(&self, name: &str, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<Piece, Error> {
        let name = PieceName::find(&self.store, name)?;
        let run = self.vetted(&name.target, terms, warn)?;
        Ok(Piece { blob: name.of(&self.store, &run)?, run: run.run.clone() })
    }
}

/// A piece of a run that passed the gate.
pub struct Piece {
    /// The run.
    pub run: RunId,
    /// Its bytes; none of a transcript that is empty.
    pub blob: Option<Blob>,
}

impl Gatekeeper<'_> {
    /// Opens the gate to `pass`.
    pub fn open<T>(&self, pass: impl FnOnce(&Gate<'_>) -> T) -> T {
        let ask = |question: &Question<'_>| match &self.outside {
            Some((anchors, means)) => ask_all(anchors, means, question),
            None => nobody(question),
        };
        let at_hand = AtHand { logs: &self.logs, ask: &ask };
        let (store, options) = (&self.repository.store, &self.options);
        pass(&Gate { store, at_hand: &at_hand, options, accept_untrusted: self.terms.accept_untrusted })
    }
}

/// Reads a run that was let through; `warn` is told what its reader should know of it.
pub fn let_in(gate: &Gate<'_>, admitted: &Admitted, warn: &mut dyn FnMut(&str)) -> Result<Vetted, Error> {
    admitted.cautions().iter().for_each(|caution| warn(caution));
    Ok(Vetted::read(gate.store, admitted)?)
}

/// Why nothing comes through the gate.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("there is no anchor {0:?} in your configuration")]
    Unknown(String),
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error(transparent)]
    Trust(#[from] trust::Error),
    #[error(transparent)]
    Barred(#[from] Barred),
    #[error(transparent)]
    Verify(#[from] verify::Error),
    #[error(transparent)]
    Target(#[from] target::Error),
    #[error(transparent)]
    Piece(#[from] piece::Error),
    #[error(transparent)]
    Run(#[from] run::Error),
}
