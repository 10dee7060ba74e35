//! Verification before the content of a run is used, with a repository's keys, logs and anchors.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::model::any_error::AnyError;
use crate::model::name::RunId;
use crate::repository::{Repository, Trust};
use crate::run::query::piece::PieceName;
use crate::run::query::{Blob, Target, VerifiedRun};
use crate::verify::{AtHand, Gate, GatedRun, LOCAL, Logs, Options, Question, Verified, ask_none};

use super::{Anchor, Means, ask_all, read};

/// The user's options.
#[derive(Clone, Copy, Default)]
pub struct Terms {
    /// Whether to accept a run by an untrusted key; a tampered one is always rejected.
    pub accept_untrusted: bool,
}

/// The context of verifications.
pub struct Gatekeeper<'a> {
    repository: &'a Repository,
    terms: Terms,
    options: Options,
    logs: Logs,
    /// The anchors to ask, and how; `None` for checking packets.
    outside: Option<(Vec<Anchor>, Means)>,
}

impl Repository {
    /// Returns named anchors, or all configured ones. `local` is always included.
    pub fn anchors(&self, names: &[String]) -> Result<Vec<Anchor>, AnyError> {
        let configured = &self.config.anchors;
        let outside = names.iter().filter(|name| *name != LOCAL);
        if let Some(unknown) = outside.clone().find(|name| !configured.contains_key(*name)) {
            return Err(Error::Unknown(unknown.clone()).into());
        }
        let selected =
            configured.iter().filter(|(name, _)| names.is_empty() || outside.clone().any(|one| one == *name));
        selected.map(|(name, settings)| self.anchor(name, settings)).collect()
    }

    /// Reads an anchor's settings. Files about trust must lie outside the work tree.
    pub fn anchor(&self, name: &str, settings: &BTreeMap<String, String>) -> Result<Anchor, AnyError> {
        let environment = &self.environment;
        let own = environment.program.as_ref().and_then(|program| program.canonicalize().ok());
        let own = own.as_deref().and_then(Path::parent).map(Path::to_owned);
        let path = environment.path.as_deref().unwrap_or_default().as_bytes();
        let path = path.split(|byte| *byte == b':').map(|folder| PathBuf::from(OsStr::from_bytes(folder)));
        let path = path.filter(|folder| folder.is_absolute());
        let mut anchor = read(name, settings, &own.into_iter().chain(path).collect::<Vec<_>>())?;
        if let Some(file) = anchor.trust_file() {
            *file = self.outside_of(&format!("handoff.anchor.{name}.ca"), file)?;
        }
        Ok(anchor)
    }

    /// Creates a gate with the keys, logs and anchors of `verify`, without prompts.
    ///
    /// Calls `warn` for ignored files.
    pub fn gatekeeper(&self, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<Gatekeeper<'_>, AnyError> {
        let anchors = self.anchors(&[])?;
        let mut means = Means::from_repository(self);
        means.reach.prompt = false;
        Ok(Gatekeeper { outside: Some((anchors, means)), ..self.gatekeeper_at_hand(terms, warn)? })
    }

    /// Creates a gate with local logs only, for checking packets offline.
    pub fn gatekeeper_at_hand(&self, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<Gatekeeper<'_>, AnyError> {
        let options = self.options(&Trust::default(), warn)?;
        Ok(Gatekeeper { repository: self, terms, options, logs: Logs::read(&self.store)?, outside: None })
    }

    /// Verifies a run; calls `warn` with notes for the reader.
    pub fn vetted(&self, target: &Target, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<VerifiedRun, AnyError> {
        let keeper = self.gatekeeper(terms, warn)?;
        keeper.open(|gate| let_in(gate, &gate.admit(&target.run, &target.reference)?, warn))
    }

    /// Verifies a run like [`Repository::vetted`], including every byte of its products.
    pub fn vetted_whole(
        &self,
        target: &Target,
        terms: Terms,
        warn: &mut dyn FnMut(&str),
    ) -> Result<VerifiedRun, AnyError> {
        let keeper = self.gatekeeper(terms, warn)?;
        keeper.open(|gate| let_in(gate, &gate.admit_intact(&target.run, &target.reference)?, warn))
    }

    /// Reads a piece of a verified run, named as in [`PieceName`]; calls `warn` with notes for the
    /// reader.
    pub fn piece(&self, name: &str, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<Piece, AnyError> {
        let name = PieceName::find(&self.store, name)?;
        let run = self.vetted(&name.target, terms, warn)?;
        Ok(Piece { blob: name.find_blob(&self.store, &run)?, run: run.run.clone() })
    }
}

/// A piece of a verified run.
pub struct Piece {
    /// The run.
    pub run: RunId,
    /// The bytes; `None` for an empty transcript.
    pub blob: Option<Blob>,
}

impl Gatekeeper<'_> {
    /// Runs `pass` with a gate.
    pub fn open<T>(&self, pass: impl FnOnce(&Gate<'_>) -> T) -> T {
        let ask = |question: &Question<'_>| match &self.outside {
            Some((anchors, means)) => ask_all(anchors, means, question),
            None => ask_none(question),
        };
        let at_hand = AtHand { logs: &self.logs, ask: &ask, bases: None };
        let (store, options) = (&self.repository.store, &self.options);
        pass(&Gate { store, at_hand: &at_hand, options, accept_untrusted: self.terms.accept_untrusted })
    }
}

/// Reads a verified run; calls `warn` with notes for the reader.
pub fn let_in(
    gate: &Gate<'_>,
    admitted: &Verified<GatedRun>,
    warn: &mut dyn FnMut(&str),
) -> Result<VerifiedRun, AnyError> {
    admitted.cautions.iter().for_each(|caution| warn(caution));
    Ok(VerifiedRun::read(gate.store, admitted)?)
}

errors! {
    /// The reason why content is not returned.
    #[derive(Debug, thiserror::Error)] pub enum Error = "unknown-anchor";
    Unknown(String): "there is no anchor {0:?} in your configuration";
}
