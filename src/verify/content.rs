//! The row `content`: product bytes are here, and hash to the digests in the entries.

use std::collections::BTreeMap;

use crate::git::store::Store;
use crate::model::digest::{Digest, Hasher, Oid};
use crate::model::entry::{Event, Product};
use crate::model::name::ItemId;

use super::Case;
use super::codes::Code;
use super::findings::{At, Findings, Verdict, counted};
use super::objects::{Fault, Objects, map_objects};

/// Larger blobs are streamed instead of read into memory.
const STREAM_ABOVE: u64 = 4 << 20;

/// A blob with the digest that an entry claims.
struct Claimed {
    label: String,
    /// The entry that claims it.
    seq: u64,
    item: Option<ItemId>,
    product: Product,
}

impl Claimed {
    fn at(&self) -> At<'_> {
        let at = At::entry(self.seq);
        self.item.as_ref().map_or(at, |item| at.for_item(item))
    }
}

pub(super) fn row(case: &Case<'_>) -> Verdict {
    if case.chain.links.is_empty() {
        return Verdict::not_applicable("no entry could be read");
    }
    let (products, artifacts) = (products(case), artifacts(case));
    let (count, sealed) = (products.len(), artifacts.len());
    // Products may share a blob, which is read once.
    let mut blobs: BTreeMap<Oid, Vec<Claimed>> = BTreeMap::new();
    for claimed in products.into_iter().chain(artifacts) {
        blobs.entry(claimed.product.oid).or_default().push(claimed);
    }
    let blobs: Vec<_> = blobs.into_iter().collect();
    let read = map_objects(case.store, &blobs, |objects, (oid, _)| hash(case.store, objects, *oid));
    let mut findings = Findings::default();
    let (mut bytes, mut missing) = (0, 0);
    for ((_, claims), outcome) in blobs.iter().zip(read) {
        for claimed in claims {
            match &outcome {
                Err(Fault::Missing(_)) if case.lazy => missing += 1,
                Err(fault) => {
                    findings.report_at(claimed.at(), Code::ContentUnread, format!("{}: {fault}", claimed.label));
                }
                Ok((digest, size)) if *digest != claimed.product.sha256 || claimed.product.size != *size => {
                    let expected = claimed.product.sha256.short();
                    findings.report_at(
                        claimed.at(),
                        Code::ContentBytes,
                        format!("{} hashes to {}, not to {expected}", claimed.label, digest.short()),
                    );
                }
                Ok((_, size)) => bytes += size,
            }
        }
    }
    let mut what = counted(count, "product", "products");
    if sealed > 0 {
        what = format!("{what} and {}", counted(sealed, "artifact", "artifacts"));
    }
    if findings.first().is_none() && missing > 0 {
        return Verdict::not_applicable(format!("{missing} blobs of {what} are not in this partial clone"));
    }
    findings.verdict(false, || format!("{what}, {} re-hashed", bytes_for_people(bytes)))
}

fn products(case: &Case<'_>) -> Vec<Claimed> {
    let mut products = Vec::new();
    for link in &case.chain.links {
        let seq = link.entry.seq;
        let claimed = |label, item, product: &Product| Claimed { label, seq, item, product: *product };
        match &link.entry.event {
            Event::ItemReconciled(e) => {
                let handed = e.products.iter();
                products.extend(
                    handed.map(|(key, product)| claimed(format!("{key} of {}", e.item), Some(e.item.clone()), product)),
                );
            }
            Event::RunSubmitted(e) => {
                products.extend(e.imports.iter().map(|(name, import)| claimed(name.clone(), None, &import.product)));
            }
            Event::DocumentWritten(e) => {
                let label = format!("revision {} of document {}", e.revision, e.name);
                products.push(claimed(label, None, &e.product()));
            }
            _ => {}
        }
    }
    products
}

fn artifacts(case: &Case<'_>) -> Vec<Claimed> {
    let sealed = case.chain.submitted().into_iter().flat_map(|e| &e.artifacts);
    let claimed = sealed.map(|(path, product)| Claimed {
        label: format!("artifact {path}"),
        seq: 0,
        item: None,
        product: *product,
    });
    claimed.collect()
}

/// Returns the SHA-256 and the size of a blob, after checking its git hash.
pub(super) fn hash(store: &Store, objects: &Objects, oid: Oid) -> Result<(Digest, u64), Fault> {
    let mut hasher = Hasher::default();
    let size = objects.size(oid)?;
    if size <= STREAM_ABOVE {
        hasher.update(&objects.read(oid, gix::objs::Kind::Blob)?);
        return Ok(hasher.finish());
    }
    // gix inflates the whole object; git streams it. The object is here, so nothing is fetched or
    // replaced.
    let mut git_hasher = objects.blob_hasher(size);
    let git = store.git().frugal().env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_NO_LAZY_FETCH", "1");
    let streamed = git.arg("cat-file").arg("blob").arg(oid.to_string()).stream(&mut |chunk| {
        hasher.update(chunk);
        git_hasher.update(chunk);
        Ok(())
    });
    streamed.map_err(|e| Fault::unread(oid, size, &e))?;
    if git_hasher.try_finalize().ok().map(Oid) != Some(oid) {
        return Err(Fault::Damaged(oid, "its bytes do not hash to its id".to_owned()));
    }
    Ok(hasher.finish())
}

#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(super) fn bytes_for_people(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}
