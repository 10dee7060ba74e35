//! Archives that are not what nobody but their key can have made: a run that is found in one is verified, and the archive itself only where
//! it was fetched, and here.

use crate::git::refs;
use crate::model::format::{ARCHIVE_REFS, REFS};
use crate::model::hints;
use crate::model::log_name::LogName;
use crate::model::place::{Kind, Place};
use crate::verify::{self, Chain};

use super::{Error, Finding, Patient};

pub(super) fn examine(patient: &Patient) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for (reference, tip) in refs::list(&patient.store, REFS)? {
        let Some(archive) = Place::of_ref(&reference).filter(|place| place.kind == Kind::Archive) else { continue };
        let Some(name) = LogName::parse(&archive.name) else { continue };
        if let Err(why) = verify::received(&patient.store, Chain::Archive(&name), None, tip) {
            let message = format!("the archive {reference} is not sound: {why}");
            let is_own = reference.starts_with(ARCHIVE_REFS);
            let hint = if is_own { hints::look_into_archive(&reference) } else { hints::remove_ref(&reference) };
            findings.push(Finding::problem("archive-unsound", message).hint(hint));
        }
    }
    Ok(findings)
}
