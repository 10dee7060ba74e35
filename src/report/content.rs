//! Chooses which contents a page carries, and shows them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::git::store::Store;
use crate::ledger::chain::Link;
use crate::model::digest::Oid;
use crate::model::entry::Event;
use crate::model::plan::ProductKey;
use crate::model::words::words;
use crate::run::query::View;

words! {
    word
    /// The patches, outputs, artifacts and saved states that a page carries. Everything else is
    /// always in its evidence.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Content {
        /// None: only their digests.
        None = "none",
        /// Those of at most [`SMALL`] bytes, up to [`SMALL_SUM`] bytes in all.
        #[default]
        Small = "small",
        /// All of them.
        All = "all",
    }
}

/// The largest content that [`Content::Small`] includes, in bytes.
pub const SMALL: u64 = 32 << 10;

/// The largest sum of contents that [`Content::Small`] includes, in bytes.
pub const SMALL_SUM: u64 = 4 << 20;

/// The largest content that is shown on the page and not only carried, in bytes.
const LARGEST_SHOWN: u64 = 64 << 10;

/// The largest image that is shown, in bytes.
const LARGEST_IMAGE: u64 = 256 << 10;

/// The first bytes of the images that browsers draw, with their media types.
const IMAGES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// The blobs that a page does not carry.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// Products, artifacts and saved states.
    pub(super) blobs: BTreeSet<Oid>,
    included: BTreeSet<Oid>,
    sum: u64,
}

impl LeftOut {
    /// Decides about the contents of a run.
    pub(super) fn decide(&mut self, view: &View, content: Content) {
        for link in &view.links {
            let Event::ItemReconciled(end) = &link.entry.event else { continue };
            // Documents decide what rules do, so they always stay.
            let products = end.products.iter().filter(|(key, _)| !matches!(key, ProductKey::Document(_)));
            products.for_each(|(_, product)| self.decide_one(product.oid, product.size, content));
        }
        for sealed in view.state.submitted.artifacts.values() {
            self.decide_one(sealed.oid, sealed.size, content);
        }
    }

    /// Decides about the contents of a thread.
    pub(super) fn decide_thread(&mut self, links: &[Link], content: Content) {
        for link in links {
            let state = &link.entry.to_json()["state"];
            let oid = state["oid"].as_str().and_then(|oid| oid.parse().ok());
            if let (Some(oid), Some(size)) = (oid, state["size"].as_u64()) {
                self.decide_one(oid, size, content);
            }
        }
    }

    fn decide_one(&mut self, oid: Oid, size: u64, content: Content) {
        if content == Content::All || self.blobs.contains(&oid) || self.included.contains(&oid) {
            return;
        }
        let fits = size <= SMALL && self.sum + size <= SMALL_SUM;
        if content == Content::Small && fits {
            self.sum += size;
            self.included.insert(oid);
        } else {
            self.blobs.insert(oid);
        }
    }
}

/// Returns a product for the page, with its content if the page carries it and it can be shown.
pub(super) fn product(store: &Store, omitted: &BTreeSet<Oid>, name: &str, product: &Value) -> Value {
    let mut value = json!({ "name": name, "sha256": product["sha256"], "size": product["size"] });
    let oid: Option<Oid> = product["oid"].as_str().and_then(|oid| oid.parse().ok());
    let size = product["size"].as_u64().unwrap_or(u64::MAX);
    let Some(oid) = oid.filter(|oid| !omitted.contains(oid)) else {
        value["leftOut"] = true.into();
        return value;
    };
    let bytes = if size <= LARGEST_IMAGE { store.read_blob_of(oid, LARGEST_IMAGE).ok() } else { None };
    let Some(bytes) = bytes else { return value };
    let image = IMAGES.iter().find(|(start, _)| bytes.starts_with(start));
    match (image, std::str::from_utf8(&bytes)) {
        (Some((_, kind)), _) => value["image"] = data_url(kind, &bytes).into(),
        _ if size > LARGEST_SHOWN || bytes.is_empty() => {}
        (None, Ok(text)) if !text.contains('\0') => value["text"] = text.into(),
        (None, _) => value["save"] = data_url("application/octet-stream", &bytes).into(),
    }
    value
}

fn data_url(kind: &str, bytes: &[u8]) -> String {
    format!("data:{kind};base64,{}", super::base64(bytes))
}
