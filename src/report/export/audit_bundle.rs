//! Verifies an audit bundle of another orchestrator (`docs/reference/export.md`) and reports rows.
//!
//! The format seals neither plan nor bytes, and its root needs an outside witness, so those rows
//! stay open. Checks more than its own verifier: that entries belong to the run, where and when a
//! reference comes from, that each dispatch has a manifest and the reverse, and values that no hash
//! covers. Those are recomputed from the entries where possible and listed in the report otherwise.

mod fates;
mod reading;
mod uncovered;

use std::collections::{BTreeMap, HashMap, HashSet};

use ssh_key::PublicKey;

use crate::ledger::merkle;
use crate::ledger::sign;
use crate::model::digest::{Digest, Hasher};
use crate::model::format;
use crate::model::json;
use crate::model::problems::Problems;

use crate::verify::findings::{Findings, Verdict, counted};
use crate::verify::report::Verdicts;
use crate::verify::signature::{self, Signature, Signed, Writers};
use crate::verify::{Code, Options, Report, Rows, Signers, State};
use reading::{AuditBundle, Manifest, Record, RootSignature};

/// The kinds of entry that the format has.
const KINDS: [&str; 10] = [
    "run.submitted",
    "item.fired",
    "item.reconciled",
    "item.retried",
    "item.skipped",
    "item.denied",
    "run.extended",
    "run.closed",
    "run.cancelled",
    COMPLETED,
];
const COMPLETED: &str = "run.completed";

/// Verifies the bytes of such a bundle.
///
/// Accepts signatures by one of the verifier's signers or by `own`, the key of the verifier's
/// repository; the bundle's statements about keys are hints. `root` is a root known from elsewhere.
/// Input that is no such bundle is an error.
pub fn verify_bundle_json(
    bytes: &[u8],
    own: Option<&PublicKey>,
    root: Option<Digest>,
    options: &Options,
) -> Result<Report, Problems> {
    let value = json::parse(bytes)?;
    let bundle = reading::read(&value)?;
    let hashes = hashes(&bundle.records);
    let found = found_root(&hashes);
    let root_matches = root == Some(found);
    let Signature { verdict: signature, signers } = signed(&bundle, found, own, options, root_matches);
    let judged = fates::judge(&bundle, options);
    let uncovered = uncovered::list(&value, judged.unsaid, signature.state == State::Ok);
    let rows = Rows {
        chain: chain(&bundle, &hashes),
        root: held_root(&bundle, found),
        signature,
        anchor: anchor(&bundle, found, root),
        handoff: handoff(&bundle),
        plan: judged.verdict,
        manifest: manifest(&bundle),
        content: Verdict::not_applicable("the format carries no product's bytes"),
    };
    let claims = Report {
        run: bundle.run.to_owned(),
        sealed: bundle.records.iter().any(|record| record.kind == COMPLETED),
        entries: bundle.records.len() as u64,
        root: Some(found),
        actor: bundle.records.first().and_then(|record| record.actor).map(str::to_owned),
        signers,
        outcome: Some(judged.outcomes),
        uncovered,
        ..Report::default()
    };
    Ok(Verdicts { rows, claims }.report())
}

/// Recomputes the hash of each entry from the one before.
fn hashes(records: &[Record<'_>]) -> Vec<Digest> {
    let mut hashes: Vec<Digest> = Vec::with_capacity(records.len());
    for record in records {
        let mut hasher = Hasher::default();
        hasher.update(&record.canonical());
        hasher.update(hashes.last().map(Digest::hex).unwrap_or_default().as_bytes());
        hashes.push(hasher.finish().0);
    }
    hashes
}

fn found_root(hashes: &[Digest]) -> Digest {
    match hashes {
        // The only difference of the format's tree from RFC 6962.
        [] => Digest::from_bytes([0; 32]),
        hashes => merkle::root(hashes.iter().map(|hash| format::leaf_hash(hash.as_bytes()))),
    }
}

/// Checks that every entry belongs to this run, follows the one before, and has a kind that may
/// occur there.
fn chain(bundle: &AuditBundle<'_>, hashes: &[Digest]) -> Verdict {
    let mut findings = Findings::default();
    if bundle.root.epoch != bundle.run {
        findings.add(format!("the root is of another run, {:?}", bundle.root.epoch));
    }
    let mut previous = String::new();
    for (at, (record, hash)) in bundle.records.iter().zip(hashes).enumerate() {
        if record.seq != at as u64 {
            findings.add(format!("entry {} stands where entry {at} belongs", record.seq));
        }
        if record.run != bundle.run {
            findings.add(format!("entry {at} is of another run, {:?}", record.run));
        }
        if record.prev != previous {
            findings.add(format!("entry {at} does not name the hash of the entry before it"));
        }
        if record.hash != hash.hex() {
            findings.add(format!("entry {at} hashes to {}, not to what it says", hash.short()));
        }
        if !KINDS.contains(&record.kind) {
            findings.add(format!("entry {at} is of the unknown kind {:?}", record.kind));
        }
        if let Some(ambiguity) = record.ambiguity() {
            findings.add(format!("entry {at} {ambiguity}"));
        }
        if (record.kind == "run.submitted") != (at == 0) {
            findings.add(format!("entry {at} is {}", record.kind));
        }
        previous = hash.hex();
    }
    // Their system completes a run again after each failure to reach its anchor.
    match bundle.records.iter().skip_while(|record| record.kind != COMPLETED).find(|record| record.kind != COMPLETED) {
        Some(late) => findings.add(format!("entry {} follows {COMPLETED}", late.seq)),
        None if bundle.records.is_empty() => findings.add("there are no entries".to_owned()),
        None => {}
    }
    findings.verdict(false, || format!("{}, hash-linked, no gaps", counted(bundle.records.len(), "entry", "entries")))
}

fn held_root(bundle: &AuditBundle<'_>, found: Digest) -> Verdict {
    if bundle.root.bytes != found.as_bytes() {
        return Verdict::failed(format!("the bundle's root is not {}, which its entries give", found.short()));
    }
    match bundle.records.last() {
        Some(last) if last.kind == COMPLETED => Verdict::ok(format!("merkle {} = the bundle's root", found.short())),
        _ => Verdict::fails([Code::NotSealed], "the run is not completed"),
    }
}

/// Checks the signature over the root by a key of the verifier. Without one, the root needs another
/// witness.
fn signed(
    bundle: &AuditBundle<'_>,
    found: Digest,
    own: Option<&PublicKey>,
    options: &Options,
    root_matches: bool,
) -> Signature {
    let strict = options.strict_signers || options.signer.is_some();
    let open = |why: String| {
        let verdict = match (strict, root_matches) {
            (true, _) => Verdict::fails([Code::KeyUnknown], why),
            (false, true) => Verdict::not_applicable(why),
            (false, false) => Verdict::incomplete(format!("{why}; give its key, --signers, or the root, --root")),
        };
        Signature { verdict, signers: Vec::new() }
    };
    let Some(RootSignature { algorithm, bytes, key: key_name }) = &bundle.root.signature else {
        return open("the root is not signed".to_owned());
    };
    if *algorithm != "ed25519" {
        return open(format!("the root is signed with {algorithm:?}; only ed25519 can be checked"));
    }
    let known = options.signers.iter().flat_map(Signers::keys).chain(own);
    let known: BTreeMap<String, &PublicKey> = known.map(|key| (sign::fingerprint(key), key)).collect();
    let made = known.iter().find(|(_, key)| sign::check_raw(key, found.as_bytes(), bytes));
    match (made, bundle.records.last()) {
        (Some((key, _)), Some(last)) => {
            let signed = Signed { seq: last.seq, at: last.at, signer: Ok(key), event: None, verified_before: false };
            signature::judge(std::iter::once(signed), Writers::Any, "", options, None).row()
        }
        _ if bytes.len() != 64 => bad_signature("the signature is not one of ed25519"),
        _ if key_name.is_some_and(|key_name| known.contains_key(key_name)) => {
            bad_signature("the signature does not match the root")
        }
        _ => open(match key_name {
            Some(key_name) => format!("by {key_name:?}, a key that you do not have"),
            None => "by a key that you do not have".to_owned(),
        }),
    }
}

fn bad_signature(why: &str) -> Signature {
    Signature { verdict: Verdict::failed(why), signers: Vec::new() }
}

/// Compares the root with the verifier's; the bundle's statement about its anchor does not count.
fn anchor(bundle: &AuditBundle<'_>, found: Digest, known: Option<Digest>) -> Verdict {
    let claimed = bundle.root.receipt.map_or_else(String::new, |(anchor, guarantee)| {
        format!("; the bundle itself speaks of {anchor:?} ({guarantee:?})")
    });
    match known {
        Some(known) if known == found => Verdict::ok("the root that you gave"),
        Some(known) => Verdict::failed(format!("you gave the root {}, recomputed is {}", known.short(), found.short())),
        None => Verdict::not_applicable(format!("nothing of yours holds the root{claimed}")),
    }
}

/// Checks that every consumed reference is a product of another item that was done earlier.
fn handoff(bundle: &AuditBundle<'_>) -> Verdict {
    let manifests = Manifests::index(bundle);
    let mut findings = Findings::default();
    let mut produced: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut count = 0;
    for record in &bundle.records {
        let Some(item) = record.item else { continue };
        if record.kind == "item.reconciled" && record.status == Some("done") {
            for product in record.products() {
                produced.entry(product).or_default().insert(item);
            }
        }
        let dispatched = manifests.behind(record).into_iter().flat_map(|manifest| &manifest.inputs);
        for (key, reference) in dispatched {
            count += 1;
            match produced.get(reference) {
                Some(by) if by.iter().any(|by| *by != item) => {}
                Some(_) => findings.add(format!("{item} consumed as {key:?} what only itself produced")),
                None => findings.add(format!("{item} consumed as {key:?} what no item had produced: {reference:?}")),
            }
        }
    }
    findings.verdict(false, || {
        format!(
            "{} accounted for; which one the plan meant, the format does not say",
            counted(count, "input ref", "input refs")
        )
    })
}

/// Checks that every dispatch has a manifest and every manifest a dispatch.
fn manifest(bundle: &AuditBundle<'_>) -> Verdict {
    let manifests = Manifests::index(bundle);
    let mut findings = Findings::default();
    let mut backed = HashSet::new();
    let mut known = HashSet::new();
    for record in bundle.records.iter().filter(|record| record.kind == "item.fired") {
        match manifests.behind(record) {
            Some(manifest) => drop(backed.insert(manifest.hash)),
            None => findings.add(format!(
                "entry {}: no manifest here is what {} was dispatched with",
                record.seq,
                record.item.unwrap_or("the item")
            )),
        }
    }
    for manifest in &bundle.manifests {
        if manifest.hash != Digest::compute(&manifest.canonical()).to_string() {
            findings.add(format!("a manifest of {} does not hash to what it says", manifest.item));
        } else if !known.insert(manifest.hash) {
            findings.add(format!("a manifest of {} stands here twice", manifest.item));
        } else if !backed.contains(manifest.hash) {
            findings.add(format!("a manifest of {} belongs to no dispatch", manifest.item));
        }
    }
    findings.verdict(false, || {
        format!("{} bound to their entries", counted(bundle.manifests.len(), "manifest", "manifests"))
    })
}

/// The manifests by the hash that ends a reference.
struct Manifests<'b, 'v> {
    run: &'v str,
    by_hash: HashMap<String, &'b Manifest<'v>>,
}

impl<'b, 'v> Manifests<'b, 'v> {
    fn index(bundle: &'b AuditBundle<'v>) -> Self {
        let mut by_hash = HashMap::new();
        for manifest in &bundle.manifests {
            by_hash.insert(Digest::compute(&manifest.canonical()).to_string(), manifest);
            by_hash.insert(Digest::compute(&manifest.with_hash()).to_string(), manifest);
        }
        Self { run: bundle.run, by_hash }
    }

    /// Returns the manifest that an entry's reference names, if it is of the same item.
    fn behind(&self, record: &Record<'v>) -> Option<&'b Manifest<'v>> {
        let hash = record.refs.manifest?.rsplit('/').next()?;
        let manifest = self.by_hash.get(hash).copied()?;
        (record.kind == "item.fired" && Some(manifest.item) == record.item && manifest.run == self.run)
            .then_some(manifest)
    }
}
