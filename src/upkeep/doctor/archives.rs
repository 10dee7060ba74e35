//! Archives that are not what nobody but their key can have made, and runs of which two places say different things.
//!
//! A run that is found in an archive is verified, and the archive itself only where it was fetched, and here.

use std::collections::BTreeMap;

use crate::git::{archives, history, refs};
use crate::model::digest::Oid;
use crate::model::format::{ARCHIVE_REFS, REFS};
use crate::model::hints;
use crate::model::log_name::LogName;
use crate::model::place::{Kind, Place};
use crate::verify::{self, Chain};

use super::{Error, Finding, Patient};

/// What a run is by the first ref that says so, by the name of the ref that it would have.
type Said = BTreeMap<String, (String, Oid)>;

pub(super) fn examine(patient: &Patient) -> Result<Vec<Finding>, Error> {
    let (mut findings, mut said) = (Vec::new(), Said::new());
    for (reference, tip) in refs::list(&patient.store, REFS)? {
        let Some(archive) = Place::of_ref(&reference).filter(|place| place.kind == Kind::Archive) else { continue };
        let Some(name) = LogName::parse(&archive.name) else { continue };
        let is_own = reference.starts_with(ARCHIVE_REFS);
        let look = || if is_own { hints::look_into_archive(&reference) } else { hints::remove_ref(&reference) };
        if let Err(why) = verify::received(&patient.store, Chain::Archive(&name), None, tip) {
            let message = format!("the archive {reference} is not sound: {why}");
            findings.push(Finding::problem("archive-unsound", message).hint(look()));
            continue;
        }
        for message in differences(patient, &reference, tip, &mut said)? {
            findings.push(Finding::problem("archive-differs", message).hint(look()));
        }
    }
    Ok(findings)
}

/// Says which runs of a sound archive are others by their own refs, or by an archive of the same folder that was looked at before.
fn differences(patient: &Patient, reference: &str, tip: Oid, said: &mut Said) -> Result<Vec<String>, Error> {
    let store = &patient.store;
    let (Some(folder), Ok(contents)) = (archives::folder_of(reference), archives::contents(store, tip)) else {
        return Ok(Vec::new());
    };
    let mut messages = Vec::new();
    for (run, held) in contents.iter() {
        let own = Place::of_run(run).below(&folder);
        if !said.contains_key(&own) {
            let there = refs::read_stored(store, &own)?;
            said.extend(there.map(|there| (own.clone(), (own.clone(), there))));
        }
        let (other, there) = said.entry(own).or_insert_with(|| (reference.to_owned(), held.commit));
        // What an archive holds is sealed: a ref may be at an earlier part of it and no further.
        if !history::goes_on(store, *there, held.commit) {
            let run = run.as_str();
            messages.push(format!("{reference} holds {} of the run {run:?}, and {other} is at {there}", held.commit));
        }
    }
    Ok(messages)
}
