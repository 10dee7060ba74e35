//! A run's chain: its entries.

use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::entry::{Event, RunSubmitted};
use crate::model::role::{Keys, Role};

use super::codes::Code;
use super::entry_order::{self, Parents};
use super::findings::{At, Findings};
use super::objects::Fault;
use super::reader::{Extent, Link, Stop, Walk, short};

/// The number of commits that are not entries, above which the walk stops.
const MAX_NON_ENTRIES: usize = 100;

#[derive(Default)]
pub(super) struct RunChain {
    /// The entries, oldest first. Commits that are not entries are findings.
    pub(super) links: Vec<Link>,
    pub(super) findings: Findings,
    /// True if a missing or damaged object ended the walk before the first entry.
    pub(super) cut: bool,
}

/// The commit up to which a run was verified before, with entries of one key.
///
/// The commit id covers everything before it. The caller must have stored the
/// mark where no other program writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The commit of the last verified entry.
    pub commit: Oid,
    /// The fingerprint of the key that signed all entries.
    pub key: String,
}

impl RunChain {
    /// Reads the chain that ends at `tip`. Never fails: faults become findings.
    pub(super) fn read(from: &Store, tip: Oid) -> Self {
        Self::read_on(from, tip, None)
    }

    /// Returns a chain of one entry, whose predecessors were checked before.
    pub(super) fn of_next(link: Link) -> Self {
        Self { links: vec![link], ..Self::default() }
    }

    /// Reads like [`RunChain::read`], but only decodes and orders the entries up to the mark.
    pub(super) fn read_on(from: &Store, tip: Oid, mark: Option<&Mark>) -> Self {
        let back = Extent::ToRoot { max_non_entries: MAX_NON_ENTRIES, max_commits: usize::MAX };
        let walked = Walk { verified_before: mark.map(|mark| mark.commit), ..Walk::new(back) }.read(from, tip);
        let mut chain = Self::default();
        match walked.stop {
            // A ref to another object is no chain. Behind an entry, the chain is cut.
            Some(Stop::Fault(Fault::Kind(oid, kind, _))) if oid == tip => {
                chain.findings.report(Code::Ref, format!("object {} is a {kind}, not an entry", short(oid)));
            }
            Some(Stop::Fault(fault)) => {
                chain.findings.report_fault(Code::Object, "the chain", &fault);
                chain.cut = true;
            }
            Some(stop) => {
                chain.findings.report(Code::Entry, stop.to_string());
                chain.cut = true;
            }
            None => {}
        }
        chain.links.reserve_exact(walked.commits.len());
        for commit in walked.commits {
            match commit {
                Ok(link) => chain.links.push(*link),
                Err(why) => chain.findings.report(Code::Entry, why),
            }
        }
        chain
    }

    pub(super) fn unreadable(why: String) -> Self {
        let mut chain = Self::default();
        chain.findings.report(Code::Ref, why);
        chain
    }

    /// Returns the event of entry 0, if it is readable and valid.
    pub(super) fn submitted(&self) -> Option<&RunSubmitted> {
        match self.links.first().map(|link| &link.entry.event) {
            Some(Event::RunSubmitted(e)) => Some(e),
            _ => None,
        }
    }

    /// Returns the keys that may seal the run: those in entry 0 and those that an owner admitted.
    pub(super) fn sealers(&self) -> Vec<String> {
        let Some(submitted) = self.submitted() else { return Vec::new() };
        let (mut sealers, keys) = (submitted.sealers(), Keys::from_submitted(submitted));
        for link in &self.links {
            let Event::RunAdmitted(e) = &link.entry.event else { continue };
            let by_owner = link.signer.as_ref().is_ok_and(|key| keys.refuse(key, &link.entry.event).is_none());
            if e.role == Role::Seal && by_owner && !sealers.contains(&e.key) {
                sealers.push(e.key.clone());
            }
        }
        sealers
    }

    pub(super) fn check_order(&self, findings: &mut Findings) {
        let mut before = None;
        for link in &self.links {
            // The predecessor of the first entry in a cut chain is unknown.
            if !self.cut || before.is_some() {
                entry_order::faults(link, before, Parents::Counted)
                    .for_each(|fault| findings.report_at(At::entry(link.entry.seq), Code::Order, fault));
            }
            before = Some(link);
        }
    }
}
