//! Requirements beyond an intact run: the claim, and the sandbox of attempts. Pure.

use std::collections::BTreeMap;

use crate::model::confinement::missing;

use super::protected::NotRecomputed;
use super::report::MISMATCH;
use super::{Claim, Decided, Failure, Guarantee, Report, State, Upstream};

/// The requirements on a run that is intact.
#[derive(Clone, Debug, Default)]
pub struct Requirements<'a> {
    /// The least guarantee.
    pub claim: Claim,
    /// The layers that confined every attempt.
    pub layers: Vec<&'a str>,
    /// True if the protected files of every item must have been recomputed.
    pub protected: bool,
    /// True if the evidence must show that each key that decided may decide.
    pub roles: bool,
}

impl Report {
    /// Returns true if the run is intact and supports the claim.
    pub fn proves(&self, claim: Claim) -> bool {
        self.intact && (claim == Claim::TamperDetecting || self.claim == claim)
    }

    /// Checks the report against requirements.
    ///
    /// A requirement that is not met is recorded in the report, and fails a run that is intact
    /// otherwise.
    pub fn require(&mut self, required: &Requirements<'_>) {
        let Requirements { claim, ref layers, protected, roles } = *required;
        let own = self
            .less_than(layers)
            .map(|(sandbox, layer)| format!("{layer} was required, but attempts have the sandbox `{sandbox}`"));
        let open = NotRecomputed::in_words(&self.not_recomputed).filter(|_| protected);
        let open = open.map(|items| format!("protected was required: protected files of {items}"));
        let unshown = self.decisions.iter().find(|decided| roles && !decided.role_shown);
        let unshown = unshown.map(|decided| {
            let Decided { item, by, .. } = decided;
            format!("trusted keys were required, but that {by} may decide about {item} is not shown")
        });
        self.unmet = own
            .or_else(|| self.upstream.iter().find_map(|upstream| upstream.less_than(layers)))
            .or(open)
            .or(unshown)
            .or_else(|| {
                let unproven = self.intact && !self.proves(claim);
                unproven.then(|| {
                    let message =
                        "tamper-evident was required; it takes trusted signers and an anchor that cannot be rewritten";
                    format!("{message}: {}", self.short_of_evident())
                })
            });
        if self.intact && self.unmet.is_some() {
            (self.intact, self.failure, self.headline) = (false, Some(Failure::Required), MISMATCH);
        }
    }

    /// Returns the sandbox of an attempt that lacks a required layer, with that layer.
    ///
    /// Attempts with an unreadable manifest do not count; they fail the row `manifest`.
    pub fn less_than<'a>(&self, required: &[&'a str]) -> Option<(&str, &'a str)> {
        lacking(&self.sandbox, required)
    }

    /// Returns the reasons why an intact run is not tamper-evident.
    fn short_of_evident(&self) -> String {
        let mut lacks = Vec::new();
        if let Some(signer) = self.signers.iter().find(|signer| signer.principal.is_none()) {
            lacks.push(format!("your signers do not name the key {}", signer.fingerprint));
        }
        if self.guarantee != Guarantee::ExternalImmutable {
            lacks.push(format!("the strongest guarantee is {}", self.guarantee.as_str()));
        }
        let open = self.rows.iter().filter(|row| row.state != State::Ok && row.name != "signature");
        lacks.extend(open.map(|row| format!("{} is open: {}", row.name, row.detail)));
        lacks.join("; ")
    }
}

impl Upstream {
    /// Returns a message if the sandbox of an upstream run lacks a layer or is unknown.
    fn less_than(&self, required: &[&str]) -> Option<String> {
        let layer = required.first().filter(|_| self.run)?;
        let what = format!("but the run {}, from which products were imported,", self.name);
        match &self.sandbox {
            Some(sandbox) => {
                let (sandbox, missing) = lacking(sandbox, required)?;
                Some(format!("{missing} was required, {what} has attempts with the sandbox `{sandbox}`"))
            }
            None if self.imported => Some(format!(
                "{layer} was required, {what} has no local copy up to its seal, so its sandbox is unknown"
            )),
            // The run holds the manifests of reused items, so they count as its own.
            None => None,
        }
    }
}

fn lacking<'s, 'a>(sandboxes: &'s BTreeMap<String, u64>, required: &[&'a str]) -> Option<(&'s str, &'a str)> {
    sandboxes.keys().find_map(|sandbox| Some((sandbox.as_str(), missing(sandbox, required)?)))
}
