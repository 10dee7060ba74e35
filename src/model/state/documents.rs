//! Documents of a run.

use std::collections::BTreeSet;

use super::{Illegal, RunState};
use crate::model::document::{Author, DocumentWritten};
use crate::model::entry::ItemReconciled;
use crate::model::item_index::ItemIndex;
use crate::model::name::FilePath;
use crate::model::plan::ProductKey;

impl RunState {
    /// Adds the declared documents among the outputs as revisions.
    pub(super) fn take_documents(&mut self, at: ItemIndex, e: &ItemReconciled) -> Result<(), Illegal> {
        let declared: Vec<_> = self.graph.item(at).documents().collect();
        for document in &declared {
            let product = e.products.get(&ProductKey::Document(document.name.clone()));
            if product.is_none() || product != e.products.get(&ProductKey::Output(document.path.clone())) {
                return Err(Illegal::DocumentOfItem(e.item.clone(), document.name.clone()));
            }
            self.expect_place(&document.name)?;
        }
        let names: BTreeSet<&FilePath> = declared.iter().map(|document| &document.name).collect();
        for key in e.products.keys() {
            if let ProductKey::Document(name) = key
                && !names.contains(name)
            {
                return Err(Illegal::DocumentOfItem(e.item.clone(), name.clone()));
            }
        }
        for document in declared {
            let product = e.products[&ProductKey::Document(document.name.clone())];
            let author = Author::Item(e.item.clone());
            self.documents.push(&document.name, product, document.schema, author, self.entries);
        }
        Ok(())
    }

    pub(in crate::model) fn write_document(&mut self, e: &DocumentWritten) -> Result<(), Illegal> {
        if self.cancelled.is_some() || self.closed.is_some() {
            return Err(Illegal::WrittenAfterEnd(e.name.clone()));
        }
        self.expect_place(&e.name)?;
        self.expect_unsaid(e.said.as_deref())?;
        let latest = self.documents.latest(&e.name);
        if e.revision != latest.map_or(1, |latest| latest.number + 1) {
            return Err(Illegal::WrongRevision(e.name.clone(), e.revision));
        }
        if e.previous != latest.map(|latest| latest.product.sha256) {
            return Err(Illegal::WrongPrevious(e.name.clone(), e.revision));
        }
        self.say(e.said.as_deref());
        let author = Author::Actor(e.author.clone());
        self.documents.push(&e.name, e.product(), e.schema.clone(), author, self.entries);
        Ok(())
    }

    pub(super) fn expect_place(&self, name: &FilePath) -> Result<(), Illegal> {
        match self.documents.clash(name) {
            Some(other) => Err(Illegal::NoPlace(name.clone(), other.clone())),
            None => Ok(()),
        }
    }
}
