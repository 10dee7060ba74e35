//! The descriptor: a small JSON object that offers a checkpoint.
//!
//! Its first seven fields are known to clients of other systems. The signature covers the canonical
//! form of all other fields. A received descriptor is untrusted until it is checked.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::digest::{Digest, Oid};
use super::format;
use super::json;
use super::name::ThreadId;
use super::packet::Unclean;
use super::thread::CheckpointId;
use super::time::Moment;

/// The maximum size of a descriptor, in bytes.
pub const MAX_SIZE: usize = 64 << 10;

/// The range of the length of a nonce, in characters.
const NONCE: std::ops::RangeInclusive<usize> = 16..=128;

/// The fields of a descriptor without the signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Descriptor {
    /// `<thread>:<checkpoint>`.
    pub source: String,
    /// The thread.
    #[serde(rename = "thread_id")]
    pub thread: ThreadId,
    /// The checkpoint.
    #[serde(rename = "checkpoint_id")]
    pub checkpoint: CheckpointId,
    /// The blob of the state.
    #[serde(rename = "blob_id")]
    pub blob: Oid,
    /// The SHA-256 of the state in hexadecimal.
    #[serde(rename = "blob_sha256", serialize_with = "hex")]
    #[cfg_attr(feature = "schemas", schemars(with = "super::formats::HexDigest"))]
    pub sha256: Digest,
    /// The recipient; null for anyone.
    pub to_agent: Option<String>,
    /// The summary.
    pub summary: Option<String>,
    /// The ref of the thread.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit of the checkpoint's entry.
    pub commit: Oid,
    /// The leaf hash of the checkpoint's entry.
    pub entry: Digest,
    /// The repository's object format.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["sha1", "sha256"])))]
    pub object_format: String,
    /// The nonce, which allows one adoption in a repository.
    #[cfg_attr(feature = "schemas", schemars(length(min = 16, max = 128)))]
    pub nonce: String,
    /// The time of expiry.
    pub expires: Moment,
    /// The packet classification that the sender accepted; absent if clean or without a packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_packet: Option<Unclean>,
}

/// The signed descriptor of an offered checkpoint: the output of `offer`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SignedDescriptor<'a> {
    /// The fields.
    #[serde(flatten)]
    descriptor: &'a Descriptor,
    /// The SSH signature over the canonical form of all other fields.
    signature: &'a str,
}

/// A parsed descriptor with its signed bytes.
#[derive(Clone, Debug)]
pub struct Received {
    /// The fields.
    pub descriptor: Descriptor,
    /// The canonical form of all fields but the signature.
    pub signed: Vec<u8>,
    /// The armoured signature.
    pub signature: String,
    /// The digest of the canonical form of all fields.
    pub digest: Digest,
}

impl Descriptor {
    /// Returns the signed bytes.
    pub fn payload(&self) -> Vec<u8> {
        format::canonical(self)
    }

    /// Returns the whole descriptor.
    pub fn signed(&self, signature: &str) -> Value {
        serde_json::to_value(SignedDescriptor { descriptor: self, signature }).expect("a descriptor is JSON")
    }
}

fn hex<S: Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
    digest.hex().serialize(serializer)
}

impl Received {
    /// Parses a descriptor. The signature covers unknown fields too.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_SIZE {
            return Err(Error::TooLarge);
        }
        let value = json::parse(json::unmarked(bytes)).map_err(|problems| Error::Json(problems[0].to_string()))?;
        let digest = format::digest_of(&value);
        let Value::Object(mut map) = value else { return Err(Error::NotAnObject) };
        let signature = required(&map, "signature")?;
        map.remove("signature");
        // `ssh-keygen -Y sign` ends its output with a newline.
        let signature = signature.strip_suffix('\n').map(str::to_owned).unwrap_or(signature);
        let descriptor = read(&map)?;
        Ok(Self { descriptor, signed: format::canonical(&map), signature, digest })
    }
}

fn read(map: &Map<String, Value>) -> Result<Descriptor, Error> {
    let hex = required(map, "blob_sha256")?;
    let sha256 = format!("sha256:{hex}").parse().map_err(|_| Error::Hash)?;
    let descriptor = Descriptor {
        source: required(map, "source")?,
        thread: parsed(map, "thread_id")?,
        checkpoint: parsed(map, "checkpoint_id")?,
        blob: parsed(map, "blob_id")?,
        sha256,
        to_agent: nullable(map, "to_agent")?,
        summary: nullable(map, "summary")?,
        reference: required(map, "ref")?,
        commit: parsed(map, "commit")?,
        entry: parsed(map, "entry")?,
        object_format: required(map, "object_format")?,
        nonce: required(map, "nonce")?,
        expires: parsed(map, "expires")?,
        accepted_packet: map.contains_key("accepted_packet").then(|| parsed(map, "accepted_packet")).transpose()?,
    };
    let nonce = &descriptor.nonce;
    if !NONCE.contains(&nonce.len()) || !nonce.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        return Err(Error::Malformed("nonce"));
    }
    if descriptor.source != format!("{}:{}", descriptor.thread, descriptor.checkpoint) {
        return Err(Error::Source(descriptor.source));
    }
    // A received name must never determine which ref is requested.
    if descriptor.reference != format::thread_ref(&descriptor.thread) {
        return Err(Error::Ref(descriptor.reference));
    }
    Ok(descriptor)
}

fn parsed<T: std::str::FromStr>(map: &Map<String, Value>, key: &'static str) -> Result<T, Error> {
    required(map, key)?.parse().map_err(|_| Error::Malformed(key))
}

fn required(map: &Map<String, Value>, key: &'static str) -> Result<String, Error> {
    nullable(map, key)?.ok_or_else(|| missing(key))
}

/// Returns a required field that may be `null`, so that its omission is an error.
fn nullable(map: &Map<String, Value>, key: &'static str) -> Result<Option<String>, Error> {
    match map.get(key) {
        None => Err(missing(key)),
        Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Error::Malformed(key)),
    }
}

fn missing(key: &'static str) -> Error {
    if key == "blob_sha256" { Error::Hash } else { Error::Missing(key) }
}

errors! {
    /// The reason why bytes are not a descriptor.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    TooLarge: "the descriptor has more than {MAX_SIZE} bytes";
    Json(String): "cannot read the descriptor: {0}";
    NotAnObject: "the descriptor is not a JSON object";
    Missing(&'static str): "the descriptor lacks its `{0}`";
    Malformed(&'static str): "the descriptor's `{0}` is malformed";
    Hash: "the descriptor's `blob_sha256` is not 64 lower-case hex digits: without it, nothing says what was offered";
    Source(String): "the descriptor's `source` {0:?} is not its thread and checkpoint";
    Ref(String): "the descriptor's `ref` {0:?} is not that of its thread";
}
