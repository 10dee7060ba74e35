//! The admission of the key that sealed, in a proof of a run whose entry 0 does not name that key.

use crate::git::codec::Decoded;
use crate::model::entry::{Event, Role, RunAdmitted, RunSubmitted};
use crate::verify::findings::Findings;

use super::Revealed;
use super::entries::SignedCommit;

impl Revealed<'_> {
    pub(super) fn ends(&self) -> impl Iterator<Item = &SignedCommit> {
        [&self.first].into_iter().chain(&self.admitted).chain([&self.last])
    }

    /// Returns the keys whose logs count for the seal.
    pub(super) fn sealers(&self) -> Vec<String> {
        let mut sealers = self.first.submitted().map(RunSubmitted::sealers).unwrap_or_default();
        sealers.extend(self.admission().map(|e| e.key.clone()));
        sealers
    }

    /// Checks that the admission is the one that allowed the key of the seal. The row `signature`
    /// checks whether its signer may admit.
    pub(super) fn check_admission(&self, findings: &mut Findings) {
        let Some(admission) = &self.admitted else { return };
        let decoded = match &admission.0 {
            Ok((decoded, _)) => decoded,
            Err(why) => return findings.add(format!("the admission: {why}")),
        };
        if decoded.parents.len() != 1 {
            findings.add(format!("the admission has {} parents", decoded.parents.len()));
        }
        self.check_object_format("admission", decoded, findings);
        let sealed_by = self.last.0.as_ref().ok().and_then(|(_, signer)| signer.as_ref().ok());
        let sealers = self.first.submitted().map(RunSubmitted::sealers);
        if !self.admission().is_some_and(|e| {
            sealed_by == Some(&e.key) && !sealers.as_ref().is_some_and(|sealers| sealers.contains(&e.key))
        }) {
            findings.add("the admission is not one of the key that sealed".to_owned());
        }
    }

    /// Checks that object names have the format of the first commit's tree.
    pub(super) fn check_object_format(&self, what: &str, decoded: &Decoded, findings: &mut Findings) {
        let (Some(kind), Some(submitted)) = (self.object_kind(), self.first.submitted()) else { return };
        let mut names = [decoded.tree, submitted.base].into_iter().chain(decoded.parents.iter().copied());
        if names.any(|name| name.0.kind() != kind) {
            findings.add(format!("the {what} entry names objects in another format than the first tree"));
        }
    }

    /// Returns the kind of object names in the run's repository, by the first commit's tree.
    pub(super) fn object_kind(&self) -> Option<gix::hash::Kind> {
        self.first.decoded().map(|first| first.tree.0.kind())
    }

    fn admission(&self) -> Option<&RunAdmitted> {
        match self.admitted.as_ref().and_then(SignedCommit::entry).map(|entry| &entry.event) {
            Some(Event::RunAdmitted(e)) if e.role == Role::Seal => Some(e),
            _ => None,
        }
    }
}
