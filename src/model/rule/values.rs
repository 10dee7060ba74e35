//! The values of documents that conditions compare. Each revision is parsed once, for all rules.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{MAX_CONDITION_BYTES, Rule};
use crate::model::digest::Digest;
use crate::model::document::Revision;
use crate::model::json::{self, Found};
use crate::model::name::FilePath;

/// The values at some JSON pointers of one document.
#[derive(Debug)]
pub struct Values(Result<BTreeMap<String, Option<Found>>, String>);

impl Values {
    /// Parses a document; `None` means that it is too large.
    pub fn read<'p>(bytes: Option<&[u8]>, pointers: impl Iterator<Item = &'p str>) -> Self {
        let pointers: Vec<&str> = pointers.collect();
        let found = bytes
            .ok_or_else(|| format!("has more than {MAX_CONDITION_BYTES} bytes"))
            .and_then(|bytes| json::look(bytes, &pointers).map_err(|why| format!("is not plain JSON: {why}")));
        Self(found.map(|found| pointers.into_iter().map(str::to_owned).zip(found).collect()))
    }

    /// Parses a document for all conditions of some rules on it; `None` means that it is too large.
    pub(crate) fn of_rules(bytes: Option<&[u8]>, rules: &[Rule], document: &FilePath) -> Self {
        let conditions = rules.iter().flat_map(|rule| &rule.when.conditions);
        let pointers = conditions.filter(|condition| condition.document == *document);
        Self::read(bytes, pointers.map(|condition| condition.pointer.as_str()))
    }

    /// Returns the value at a pointer that the document was parsed for, or the reason why the
    /// document cannot be parsed.
    pub(super) fn at(&self, pointer: &str) -> Result<Option<&Found>, &str> {
        match &self.0 {
            Ok(found) => Ok(found.get(pointer).and_then(Option::as_ref)),
            Err(why) => Err(why),
        }
    }
}

/// The values of the latest revision of each document. A copy is empty.
#[derive(Debug, Default)]
pub(crate) struct LatestValues(Mutex<BTreeMap<FilePath, (Digest, Arc<Values>)>>);

impl Clone for LatestValues {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl LatestValues {
    /// Returns what conditions of `rules` compare in a revision; `read` returns its bytes.
    pub(crate) fn get<E>(
        &self,
        rules: &[Rule],
        name: &FilePath,
        revision: &Revision,
        read: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Arc<Values>, E> {
        let digest = revision.product.sha256;
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, values)) = latest.get(name).filter(|(parsed, _)| *parsed == digest) {
            return Ok(Arc::clone(values));
        }
        let bytes = if revision.product.size <= MAX_CONDITION_BYTES { Some(read()?) } else { None };
        let values = Arc::new(Values::of_rules(bytes.as_deref(), rules, name));
        latest.insert(name.clone(), (digest, Arc::clone(&values)));
        Ok(values)
    }
}
