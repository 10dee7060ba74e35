//! Parses such a bundle into data, without checking its claims.

use std::collections::BTreeMap;

use base64ct::{Base64, Encoding as _};
use serde_json::{Map, Value};

use crate::model::format;
use crate::model::json::JsonPath;
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::{Fields, wrong_type};
use crate::model::time::Moment;

/// A bundle.
pub(super) struct AuditBundle<'v> {
    pub(super) run: &'v str,
    pub(super) manifests: Vec<Manifest<'v>>,
    pub(super) records: Vec<Record<'v>>,
    pub(super) root: Root<'v>,
    /// The displayed items.
    pub(super) items: Vec<ItemShown<'v>>,
}

/// A displayed item.
pub(super) struct ItemShown<'v> {
    pub(super) id: &'v str,
    pub(super) status: &'v str,
    /// True if it is displayed as done with a failed check; no hash covers this.
    pub(super) red: bool,
    pub(super) refs: Refs<'v>,
}

/// The references of an item: its manifest and its products.
#[derive(Clone, Default)]
pub(super) struct Refs<'v> {
    pub(super) manifest: Option<&'v str>,
    pub(super) result: Option<&'v str>,
    pub(super) outputs: BTreeMap<&'v str, &'v str>,
}

/// The manifest of one dispatch.
pub(super) struct Manifest<'v> {
    map: &'v Map<String, Value>,
    pub(super) run: &'v str,
    pub(super) item: &'v str,
    pub(super) inputs: BTreeMap<&'v str, &'v str>,
    pub(super) hash: &'v str,
}

/// An entry of the log.
pub(super) struct Record<'v> {
    map: &'v Map<String, Value>,
    pub(super) run: &'v str,
    pub(super) seq: u64,
    pub(super) kind: &'v str,
    pub(super) at: Moment,
    pub(super) actor: Option<&'v str>,
    pub(super) item: Option<&'v str>,
    pub(super) status: Option<&'v str>,
    pub(super) refs: Refs<'v>,
    /// Whether the fields `authorization` and `outputRefs` are present.
    pub(super) blocks: (bool, bool),
    pub(super) hash: &'v str,
    pub(super) prev: &'v str,
}

/// The root, with its signature and receipt.
pub(super) struct Root<'v> {
    pub(super) epoch: &'v str,
    pub(super) bytes: Vec<u8>,
    pub(super) signature: Option<RootSignature<'v>>,
    /// The anchor of the root and its strength, as the bundle claims.
    pub(super) receipt: Option<(&'v str, &'v str)>,
}

/// The signature over the root's bytes.
pub(super) struct RootSignature<'v> {
    pub(super) algorithm: &'v str,
    pub(super) bytes: Vec<u8>,
    pub(super) key: Option<&'v str>,
}

/// The fields that an entry's hash covers, in order. A missing one is hashed as null.
pub(super) const PLACES: [&str; 9] =
    ["kind", "runId", "itemId", "status", "actor", "manifestRef", "resultRef", "at", "seq"];

/// The fields hashed after those, without their names and only if present.
pub(super) const BLOCKS: [&str; 2] = ["authorization", "outputRefs"];

impl<'v> Record<'v> {
    /// Returns the products of the entry.
    pub(super) fn products(&self) -> impl Iterator<Item = &'v str> + '_ {
        self.refs.outputs.values().copied().chain(self.refs.result)
    }

    /// Returns the fault of an entry whose hash does not show which of the two optional fields it
    /// has.
    ///
    /// These fields are hashed without their names, so the kind must decide: only entries that end
    /// an item have outputs.
    pub(super) fn ambiguity(&self) -> Option<&'static str> {
        match (self.kind == "item.reconciled", self.blocks) {
            (true, (true, false)) => Some("has an authorization where only outputRefs can stand, and both hash alike"),
            (false, (_, true)) => Some("has outputRefs where only an authorization can stand, and both hash alike"),
            _ => None,
        }
    }

    /// Returns the bytes for the entry's hash: a JSON array in a fixed order.
    pub(super) fn canonical(&self) -> Vec<u8> {
        let mut array: Vec<Value> =
            PLACES.iter().map(|key| self.map.get(*key).cloned().unwrap_or(Value::Null)).collect();
        for key in BLOCKS {
            if let Some(value) = self.map.get(key) {
                array.push(String::from_utf8_lossy(&format::canonical(value)).into_owned().into());
            }
        }
        format::canonical(&array)
    }
}

impl Manifest<'_> {
    /// Returns the bytes for `manifestHash`: all other fields except a signature.
    pub(super) fn canonical(&self) -> Vec<u8> {
        let mut rest = self.map.clone();
        rest.remove("manifestHash");
        rest.remove("signature");
        format::canonical(&rest)
    }

    /// Returns the manifest's bytes including its hash, which some references use.
    pub(super) fn with_hash(&self) -> Vec<u8> {
        let mut rest = self.map.clone();
        rest.remove("signature");
        format::canonical(&rest)
    }
}

/// Parses a bundle and collects every problem of its form.
pub(super) fn read(value: &Value) -> Result<AuditBundle<'_>, Problems> {
    let mut reader = Reader { problems: Problems::default() };
    match reader.bundle(value) {
        Some(bundle) if reader.problems.is_empty() => Ok(bundle),
        _ => Err(reader.problems),
    }
}

struct Reader {
    problems: Problems,
}

impl Reader {
    fn bundle<'v>(&mut self, value: &'v Value) -> Option<AuditBundle<'v>> {
        let root = JsonPath::root();
        let fields = Fields::open(self.map(value, &root)?, root);
        let run = self.text(&fields, "runId");
        let manifests = self.each(&fields, "manifests", Self::manifest);
        let log = self.required(&fields, "auditLog")?;
        let log = Fields::open(self.map(log, &fields.at("auditLog"))?, fields.at("auditLog"));
        let records = self.each(&log, "entries", Self::record);
        let sealed = self.required(&log, "root")?;
        let sealed = self.root(sealed, &log.at("root"));
        let items = if fields.get("items").is_some() { self.each(&fields, "items", Self::item) } else { Vec::new() };
        Some(AuditBundle { run: run?, manifests, records, root: sealed?, items })
    }

    fn manifest<'v>(&mut self, value: &'v Value, at: &JsonPath) -> Option<Manifest<'v>> {
        let map = self.map(value, at)?;
        let fields = Fields::open(map, at.clone());
        let (run, item) = (self.text(&fields, "runId"), self.text(&fields, "itemId"));
        let (inputs, hash) = (self.refs(&fields, "inputRefs"), self.text(&fields, "manifestHash"));
        Some(Manifest { map, run: run?, item: item?, inputs, hash: hash? })
    }

    fn record<'v>(&mut self, value: &'v Value, at: &JsonPath) -> Option<Record<'v>> {
        let map = self.map(value, at)?;
        let fields = Fields::open(map, at.clone());
        for key in BLOCKS {
            // Implementations differ on whether null is hashed.
            if fields.get(key).is_some_and(Value::is_null) {
                self.wrong(&fields, key, "an object, or nothing");
            }
        }
        let refs = self.item_refs(&fields);
        let (run, kind) = (self.text(&fields, "runId"), self.text(&fields, "kind"));
        let (hash, time) = (self.text(&fields, "entryHash"), self.text(&fields, "at"));
        let prev = self.required(&fields, "prevHash");
        let prev = prev.and_then(|_| fields.string("prevHash", &mut self.problems));
        self.required(&fields, "seq")?;
        let seq = fields.integer("seq", &(0..=u64::from(u32::MAX)), &mut self.problems);
        let time: Option<Moment> = time.and_then(|text| text.parse().ok());
        if time.is_none() {
            self.wrong(&fields, "at", "a time like 2026-06-04T02:00:00.000Z");
        }
        Some(Record {
            map,
            run: run?,
            seq: seq?,
            kind: kind?,
            at: time?,
            actor: self.optional(&fields, "actor"),
            item: self.optional(&fields, "itemId"),
            status: self.optional(&fields, "status"),
            refs,
            blocks: (map.contains_key(BLOCKS[0]), map.contains_key(BLOCKS[1])),
            hash: hash?,
            prev: prev?,
        })
    }

    fn root<'v>(&mut self, value: &'v Value, at: &JsonPath) -> Option<Root<'v>> {
        let fields = Fields::open(self.map(value, at)?, at.clone());
        let (epoch, bytes) = (self.text(&fields, "epochId"), self.bytes(&fields, "root"));
        let signature = match present(fields.map(), "signature") {
            None => None,
            Some(signature) => {
                let signed = Fields::open(self.map(signature, &fields.at("signature"))?, fields.at("signature"));
                let (algorithm, signature_bytes) = (self.text(&signed, "alg"), self.bytes(&signed, "bytes"));
                Some(RootSignature {
                    algorithm: algorithm?,
                    bytes: signature_bytes?,
                    key: self.optional(&signed, "keyRef"),
                })
            }
        };
        let receipt = present(fields.map(), "receipt").and_then(|receipt| {
            let receipt = Fields::open(receipt.as_object()?, fields.at("receipt"));
            Some((receipt.get("anchorId")?.as_str()?, receipt.get("guarantee")?.as_str()?))
        });
        Some(Root { epoch: epoch?, bytes: bytes?, signature, receipt })
    }

    fn item<'v>(&mut self, value: &'v Value, at: &JsonPath) -> Option<ItemShown<'v>> {
        let fields = Fields::open(self.map(value, at)?, at.clone());
        let (id, status) = (self.text(&fields, "id"), self.text(&fields, "status"));
        let red = fields.get("verify").is_some_and(|verify| verify["passed"] == false);
        Some(ItemShown { id: id?, status: status?, red, refs: self.item_refs(&fields) })
    }

    fn item_refs<'v>(&mut self, fields: &Fields<'v>) -> Refs<'v> {
        Refs {
            manifest: self.optional(fields, "manifestRef"),
            result: self.optional(fields, "resultRef"),
            outputs: self.refs(fields, "outputRefs"),
        }
    }

    fn map<'v>(&mut self, value: &'v Value, at: &JsonPath) -> Option<&'v Map<String, Value>> {
        if !value.is_object() {
            self.problems.push_with(|| wrong_type(at, "an object", value));
        }
        value.as_object()
    }

    fn each<'v, T>(
        &mut self,
        fields: &Fields<'v>,
        key: &str,
        read: impl Fn(&mut Self, &'v Value, &JsonPath) -> Option<T>,
    ) -> Vec<T> {
        self.required(fields, key);
        let list = fields.list(key, &mut self.problems).unwrap_or_default();
        let mut found = Vec::new();
        for (index, value) in list.iter().enumerate() {
            // Input with that many problems is no bundle.
            if !self.problems.keeps_more() {
                break;
            }
            found.extend(read(self, value, &fields.at(key).index(index)));
        }
        found
    }

    fn required<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<&'v Value> {
        fields.required(key, &mut self.problems)
    }

    fn text<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<&'v str> {
        self.required(fields, key)?;
        fields.text(key, &mut self.problems)
    }

    fn optional<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<&'v str> {
        present(fields.map(), key)?;
        fields.string(key, &mut self.problems)
    }

    /// Parses an optional object of strings.
    fn refs<'v>(&mut self, fields: &Fields<'v>, key: &str) -> BTreeMap<&'v str, &'v str> {
        if present(fields.map(), key).is_none() {
            return BTreeMap::new();
        }
        let map = fields.object(key, &mut self.problems);
        let inner = map.map(|map| Fields::open(map, fields.at(key)));
        let inner = inner.iter().flat_map(|inner| inner.map().keys().map(move |name| (inner, name.as_str())));
        inner.filter_map(|(inner, name)| Some((name, inner.string(name, &mut self.problems)?))).collect()
    }

    /// Parses bytes: base64, or, as that system's own command writes them, an object with an index
    /// for each byte.
    fn bytes(&mut self, fields: &Fields<'_>, key: &str) -> Option<Vec<u8>> {
        let value = self.required(fields, key)?;
        let bytes = match value {
            Value::String(text) => Base64::decode_vec(text).ok(),
            Value::Array(list) => octets(list.iter()),
            Value::Object(map) => match map.get("data").and_then(Value::as_array) {
                Some(list) if map.keys().all(|name| matches!(name.as_str(), "type" | "data")) => octets(list.iter()),
                Some(_) => None,
                None => (0..map.len()).map(|at| map.get(&at.to_string())?.as_u64()?.try_into().ok()).collect(),
            },
            _ => None,
        };
        if bytes.is_none() {
            self.wrong(fields, key, "bytes in base64, as an array, or as an object by index");
        }
        bytes
    }

    fn wrong(&mut self, fields: &Fields<'_>, key: &str, expected: &str) {
        self.problems.push(Problem::new(Code::WrongType, &fields.at(key), format!("expected {expected}")));
    }
}

/// Returns a field that is present and not null.
fn present<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    map.get(key).filter(|value| !value.is_null())
}

fn octets<'v>(list: impl Iterator<Item = &'v Value>) -> Option<Vec<u8>> {
    list.map(|value| value.as_u64()?.try_into().ok()).collect()
}
