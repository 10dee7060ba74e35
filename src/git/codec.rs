//! Encodes an entry as a commit object, and decodes it. Pure.
//!
//! Entry, tree and parents determine the commit. The signature covers all of it except its own
//! header, as in git.

use crate::model::digest::Oid;
use crate::model::entry::{self, Entry};
use crate::model::format::{COMMITTER, EMAIL};
use crate::model::time::Moment;

/// A commit whose message is an entry.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The tree after the entry.
    pub tree: Oid,
    /// The parents, in order.
    pub parents: Vec<Oid>,
    /// The armored signature, without a final newline.
    pub signature: Option<String>,
    /// The entry.
    pub entry: Entry,
    /// The leaf hash of the entry.
    pub hash: crate::model::digest::Digest,
    /// The signed bytes: the commit without the signature header.
    pub payload: Vec<u8>,
}

/// Returns the bytes to sign: the commit without a signature.
pub fn payload(entry: &Entry, tree: Oid, parents: &[Oid]) -> Vec<u8> {
    let mut out = headers(entry, tree, parents);
    push_message(&mut out, entry, &entry.canonical());
    out
}

/// Returns the commit with the signature header inserted.
pub fn signed(entry: &Entry, tree: Oid, parents: &[Oid], signature: &str) -> Vec<u8> {
    let mut out = headers(entry, tree, parents);
    push_signature(&mut out, tree, signature);
    push_message(&mut out, entry, &entry.canonical());
    out
}

/// Parses a commit that carries an entry.
///
/// Accepts only the exact bytes that [`signed`] writes, so that no header, space or encoding can
/// differ unnoticed.
pub fn decode(raw: &[u8]) -> Result<Decoded, Error> {
    let split = raw.windows(2).position(|w| w == b"\n\n").ok_or(Error::Malformed("no message"))?;
    let head = std::str::from_utf8(&raw[..=split]).map_err(|_| Error::Malformed("headers are not UTF-8"))?;
    let mut lines = head.split('\n').peekable();
    let tree: Oid = lines
        .next()
        .and_then(|line| line.strip_prefix("tree "))
        .and_then(|id| id.parse().ok())
        .ok_or(Error::Malformed("no tree"))?;
    let mut parents = Vec::new();
    while let Some(id) = lines.peek().and_then(|line| line.strip_prefix("parent ")) {
        parents.push(id.parse().map_err(|_| Error::Malformed("a parent is no object name"))?);
        lines.next();
    }
    // Author and committer follow from the entry and are compared as bytes below.
    lines.next();
    lines.next();
    let signature = lines.next().and_then(|first| {
        let first = first.strip_prefix(signature_header(tree))?.strip_prefix(' ')?;
        let rest = lines.by_ref().map_while(|line| line.strip_prefix(' '));
        Some(std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n"))
    });
    let message = &raw[split + 2..];
    let body = message
        .windows(2)
        .position(|w| w == b"\n\n")
        .and_then(|end| message[end + 2..].strip_suffix(b"\n"))
        .ok_or(Error::Malformed("the message is not a subject and an entry"))?;
    // The parser accepts only canonical bytes, so the entry reproduces them.
    let entry = Entry::parse(body)?;
    let mut payload = headers(&entry, tree, &parents);
    let mut exact = payload.clone();
    if let Some(signature) = &signature {
        push_signature(&mut exact, tree, signature);
    }
    push_message(&mut exact, &entry, body);
    if exact != raw {
        return Err(Error::NotExact);
    }
    push_message(&mut payload, &entry, body);
    Ok(Decoded { tree, payload, parents, signature, hash: crate::model::format::leaf_hash(body), entry })
}

/// Returns the author name for an actor, without control characters and angle brackets, which would
/// break the header.
fn author(actor: &str) -> String {
    actor.chars().map(|c| if c.is_control() || c == '<' || c == '>' { '_' } else { c }).collect()
}

fn signature_header(tree: Oid) -> &'static str {
    match tree.0.kind() {
        gix::hash::Kind::Sha256 => "gpgsig-sha256",
        _ => "gpgsig",
    }
}

fn headers(entry: &Entry, tree: Oid, parents: &[Oid]) -> Vec<u8> {
    headers_by(&entry.actor, entry.at, tree, parents)
}

fn headers_by(actor: &str, at: Moment, tree: Oid, parents: &[Oid]) -> Vec<u8> {
    let parents: String = parents.iter().fold(String::new(), |lines, parent| lines + &format!("parent {parent}\n"));
    let date = at.seconds();
    let author = author(actor);
    let author = format!("author {author} <{EMAIL}> {date} +0000");
    let committer = format!("committer {COMMITTER} <{EMAIL}> {date} +0000");
    format!("tree {tree}\n{parents}{author}\n{committer}\n").into_bytes()
}

fn push_signature(out: &mut Vec<u8>, tree: Oid, signature: &str) {
    out.extend_from_slice(signature_header(tree).as_bytes());
    for line in signature.split('\n') {
        out.push(b' ');
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
}

/// Adds subject and body; `canonical` are the entry's own bytes.
fn push_message(out: &mut Vec<u8>, entry: &Entry, canonical: &[u8]) {
    out.push(b'\n');
    out.extend_from_slice(entry.subject().as_bytes());
    out.extend_from_slice(b"\n\n");
    out.extend_from_slice(canonical);
    out.push(b'\n');
}

/// The message of a signed commit that carries no entry.
pub struct Message<'a> {
    /// The acting person or program.
    pub author: &'a str,
    /// The time of the commit.
    pub at: Moment,
    /// The text, without a final newline.
    pub text: &'a [u8],
}

impl Message<'_> {
    /// Returns the bytes to sign.
    pub fn payload(&self, tree: Oid, parents: &[Oid]) -> Vec<u8> {
        let mut out = headers_by(self.author, self.at, tree, parents);
        self.push(&mut out);
        out
    }

    /// Returns the commit with the signature header inserted.
    pub fn signed(&self, tree: Oid, parents: &[Oid], signature: &str) -> Vec<u8> {
        let mut out = headers_by(self.author, self.at, tree, parents);
        push_signature(&mut out, tree, signature);
        self.push(&mut out);
        out
    }

    fn push(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.extend_from_slice(self.text);
        out.push(b'\n');
    }
}

/// A signed commit, taken apart.
pub struct Parsed {
    /// The text of the message, without its final newline.
    pub text: Vec<u8>,
    /// The armored signature.
    pub signature: Option<String>,
    /// The signed bytes.
    pub payload: Vec<u8>,
}

/// Takes a signed commit apart, or returns `None` if it is none.
pub fn parse_message(raw: &[u8]) -> Option<Parsed> {
    let split = raw.windows(2).position(|w| w == b"\n\n")?;
    let head = std::str::from_utf8(&raw[..=split]).ok()?;
    let (mut unsigned, mut signature, mut inside) = (String::new(), Vec::new(), false);
    for line in head.split_inclusive('\n') {
        let begins = ["gpgsig ", "gpgsig-sha256 "].iter().find_map(|name| line.strip_prefix(name));
        let rest = begins.or_else(|| line.strip_prefix(' ').filter(|_| inside));
        inside = rest.is_some();
        match rest {
            Some(rest) => signature.push(rest.trim_end_matches('\n')),
            None => unsigned.push_str(line),
        }
    }
    let text = raw[split + 2..].strip_suffix(b"\n")?.to_vec();
    let payload = [unsigned.as_bytes(), b"\n", &raw[split + 2..]].concat();
    Some(Parsed { text, signature: (!signature.is_empty()).then(|| signature.join("\n")), payload })
}

errors! {
    /// Why a commit is not an entry.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Malformed(&'static str): "the commit is not an entry: {0}";
    NotExact: "the commit's bytes differ from those that its entry determines";
    #[from] Entry(entry::Error);
}
