//! Requirements of a verifier that go beyond a run being intact: how much can be claimed, and what confined its attempts. Pure.

use std::collections::BTreeMap;

use crate::model::confinement::missing;

use super::report::MISMATCH;
use super::{Claim, Failure, Guarantee, Report, State, TakenFrom};

impl Report {
    /// Returns whether all of it holds, and as much can be claimed as is wanted.
    pub fn proves(&self, wanted: Claim) -> bool {
        self.intact && (wanted == Claim::TamperDetecting || self.claim == wanted)
    }

    /// Checks the report against the claim and the layers of confinement that are required.
    ///
    /// What is not met is noted in the report, and is the failure of a run that is intact otherwise.
    pub fn require(&mut self, claim: Claim, layers: &[&str]) {
        let unconfined = || self.taken_from.iter().find_map(|taken| taken.less_than(layers));
        let unproven = || {
            let unproven = self.intact && !self.proves(claim);
            unproven.then(|| {
                let wanted =
                    "tamper-evident was required; it takes trusted signers and an anchor that nobody can rewrite";
                format!("{wanted}: {}", self.short_of_evident())
            })
        };
        let own = self.less_than(layers).map(|(sandbox, layer)| {
            format!("{layer} was required, and there are attempts whose sandbox was `{sandbox}`")
        });
        self.unmet = own.or_else(unconfined).or_else(unproven);
        if self.intact && self.unmet.is_some() {
            (self.intact, self.failure, self.headline) = (false, Some(Failure::Required), MISMATCH);
        }
    }

    /// Returns the sandbox of some attempt, and the first of the required layers that it lacks; `None` if all attempts had them.
    ///
    /// An attempt whose manifest cannot be read is not counted here; the row `manifest` fails then.
    pub fn less_than<'a>(&self, required: &[&'a str]) -> Option<(&str, &'a str)> {
        lacking(&self.sandbox, required)
    }

    /// Says what an intact run lacks to be tamper-evident.
    fn short_of_evident(&self) -> String {
        let mut lacks = Vec::new();
        if let Some(signer) = self.signers.iter().find(|signer| signer.principal.is_none()) {
            lacks.push(format!("your signers do not name the key {}", signer.fingerprint));
        }
        if self.guarantee != Guarantee::ExternalImmutable {
            lacks.push(format!("what holds the run is {}", self.guarantee.as_str()));
        }
        let open = self.rows.iter().filter(|row| row.state != State::Ok && row.name != "signature");
        lacks.extend(open.map(|row| format!("{} is open: {}", row.name, row.detail)));
        lacks.join("; ")
    }
}

impl TakenFrom {
    /// Says that a run which products were taken from is not known to have had the required layers.
    fn less_than(&self, required: &[&str]) -> Option<String> {
        let layer = required.first().filter(|_| self.run)?;
        let what = format!("and the run {}, which products were taken from,", self.name);
        match &self.sandbox {
            Some(sandbox) => {
                let (sandbox, layer) = lacking(sandbox, required)?;
                Some(format!("{layer} was required, {what} has attempts whose sandbox was `{sandbox}`"))
            }
            None if self.imported => {
                Some(format!("{layer} was required, {what} is not here to its seal, so that its sandbox is not known"))
            }
            // Of an item that was reused, the run holds the manifest, which is counted as its own.
            None => None,
        }
    }
}

/// Returns the first sandbox that lacks a required layer, and that layer.
fn lacking<'s, 'a>(sandboxes: &'s BTreeMap<String, u64>, required: &[&'a str]) -> Option<(&'s str, &'a str)> {
    sandboxes.keys().find_map(|sandbox| Some((sandbox.as_str(), missing(sandbox, required)?)))
}
