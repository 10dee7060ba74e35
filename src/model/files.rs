//! The files of an entry: the bytes that it names, at their paths in its commit's tree.

use std::collections::BTreeMap;

use super::bounds;
use super::event::{Event, Product};
use super::format;

/// Returns the most bytes of the file at a path, if `verify` reads it whole. Products, artifacts
/// and documents have no limit, because they are hashed as a stream.
pub fn most_bytes(path: &str) -> Option<u64> {
    match path.split_once('/') {
        None if path == format::PATCH => None,
        None if path == format::MANIFEST => Some(bounds::MANIFEST),
        None if path == format::PLAN || path == format::RULES => Some(bounds::PLAN),
        Some(("items", _)) => Some(bounds::PLAN),
        None | Some((format::PIPELINES, _)) => Some(bounds::BLOB),
        Some((format::IMPORTS, file)) => file.ends_with("/evidence.json").then_some(bounds::BLOB),
        Some(_) => None,
    }
}

impl Event {
    /// Returns the files of an entry of a run, by path. The tree of its commit has exactly these,
    /// so that git keeps them; what they are follows from the entry alone.
    pub fn files(&self) -> BTreeMap<String, Product> {
        let mut files = BTreeMap::new();
        let mut add = |path: String, bytes: &Product| {
            files.insert(path, *bytes);
        };
        match self {
            Self::RunSubmitted(e) => {
                add(format::PLAN.to_owned(), &e.plan);
                e.rules.iter().for_each(|rules| add(format::RULES.to_owned(), rules));
                e.continues.iter().for_each(|from| add(format::CONTINUES.to_owned(), &from.evidence));
                e.artifacts.iter().for_each(|(path, bytes)| add(format::artifact_path(path), bytes));
                e.pipelines.values().for_each(|spec| add(format::pipeline_path(spec.sha256), spec));
                for (name, import) in &e.imports {
                    let [product, evidence] = format::import_paths(name);
                    add(product, &import.product);
                    add(evidence, &import.evidence);
                }
            }
            Self::ItemFired(e) => add(format::MANIFEST.to_owned(), &e.manifest),
            Self::ItemReconciled(e) => {
                e.products.iter().for_each(|(key, product)| add(format::product_path(key), product));
                let evidence = e.reused.as_ref().and_then(|reused| reused.evidence.as_ref());
                evidence.into_iter().for_each(|evidence| add(format::REUSED.to_owned(), evidence));
            }
            Self::RunExtended(e) => {
                e.items.iter().for_each(|(item, bytes)| add(format::item_path(item), bytes));
                e.pipelines.values().for_each(|spec| add(format::pipeline_path(spec.sha256), spec));
            }
            Self::DocumentWritten(e) => add(format::document_path(&e.name), &e.product()),
            _ => {}
        }
        files
    }
}
