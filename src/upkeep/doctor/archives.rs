//! Archives that are invalid, and runs with different content in two places.
//!
//! A run from an archive is verified when it is read; the archive itself when it is fetched, and
//! here.

use std::collections::BTreeMap;

use crate::git::{archives, history, refs};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::format::{ARCHIVE_REFS, REFS};
use crate::model::hints;
use crate::model::log_name::LogName;
use crate::model::place::{Kind, Place};
use crate::verify::{self, Chain};

use super::{Finding, Patient};

/// The content of each run by the first ref that names it.
type Said = BTreeMap<String, (String, Oid)>;

pub(super) fn examine(patient: &Patient<'_>) -> Result<Vec<Finding>, AnyError> {
    let (mut findings, mut known_heads) = (Vec::new(), Said::new());
    for (reference, tip) in refs::list(patient.store, REFS)? {
        let Some(archive) = Place::of_ref(&reference).filter(|place| place.kind == Kind::Archive) else { continue };
        let Some(name) = LogName::parse(&archive.name) else { continue };
        let is_own = reference.starts_with(ARCHIVE_REFS);
        let look = || if is_own { hints::look_into_archive(&reference) } else { hints::remove_ref(&reference) };
        if let Err(why) = verify::check_incoming(patient.store, Chain::Archive(&name), None, tip) {
            let message = format!("the archive {reference} is not sound: {why}");
            findings.push(Finding::problem("archive-unsound", message).hint(look()));
            continue;
        }
        for message in differences(patient, &reference, tip, &mut known_heads)? {
            findings.push(Finding::problem("archive-differs", message).hint(look()));
        }
    }
    Ok(findings)
}

/// Reports the runs of a valid archive that differ from their own ref, or from an archive of the
/// same folder that was checked before.
fn differences(
    patient: &Patient<'_>,
    reference: &str,
    tip: Oid,
    known_heads: &mut Said,
) -> Result<Vec<String>, AnyError> {
    let store = patient.store;
    let (Some(folder), Ok(contents)) = (archives::folder_of(reference), archives::contents(store, tip)) else {
        return Ok(Vec::new());
    };
    let mut messages = Vec::new();
    for (run, archived) in contents.iter() {
        let own = Place::of_run(run).below(&folder);
        if !known_heads.contains_key(&own) {
            let there = refs::read_stored(store, &own)?;
            known_heads.extend(there.map(|there| (own.clone(), (own.clone(), there))));
        }
        let (other, there) = known_heads.entry(own).or_insert_with(|| (reference.to_owned(), archived.commit));
        // Archived runs are sealed: a ref may be at an earlier entry, but not beyond.
        if !history::goes_on(store, *there, archived.commit) {
            let run = run.as_str();
            messages
                .push(format!("{reference} holds {} of the run {run:?}, and {other} is at {there}", archived.commit));
        }
    }
    Ok(messages)
}
