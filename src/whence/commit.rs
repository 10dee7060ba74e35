//! A commit and the claims in its message.

use gix::objs::{CommitRef, Kind};

use crate::apply;
use crate::git::store::{self, Store};
use crate::model::digest::Oid;

/// A commit as it is stored, without replacement refs.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    /// Its name.
    pub(super) oid: Oid,
    /// Its tree.
    pub(super) tree: Oid,
    /// Its parents.
    pub(super) parents: Vec<Oid>,
    /// The author's name and address: a claim.
    pub(super) author: String,
    /// The first line of its message.
    pub(super) subject: String,
    /// The items that its message names: hints, not evidence.
    pub(super) claims: Vec<Claim>,
    /// The items whose conflicts the author resolved, according to the message. It does not claim
    /// to be their products.
    pub(super) resolved: Vec<String>,
}

/// An item named in a message, as `apply` writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    /// The run.
    pub(super) run: String,
    /// The item, if named.
    pub(super) item: Option<String>,
    /// The product's digest, if named.
    pub(super) product: Option<String>,
}

impl Commit {
    /// Reads a commit.
    pub(super) fn read(store: &Store, oid: Oid) -> Result<Self, store::Error> {
        let (kind, bytes) = store.read(oid)?;
        if kind != Kind::Commit {
            return Err(store::Error::Kind(oid, kind));
        }
        let commit =
            CommitRef::from_bytes(&bytes, store.hash_kind()).map_err(|e| store::Error::Find(oid, Box::new(e)))?;
        let message = commit.message.to_string();
        // The time follows the address.
        let author = commit.author.to_string();
        let author = author.rsplit_once('>').map_or_else(|| author.clone(), |(who, _)| format!("{who}>"));
        Ok(Self {
            oid,
            tree: Oid(commit.tree()),
            parents: commit.parents().map(Oid).collect(),
            author,
            subject: message.lines().next().unwrap_or_default().to_owned(),
            claims: claims(&message),
            resolved: resolved(&message),
        })
    }
}

/// Parses the trailers anywhere in a message, because squashing joins several messages.
fn claims(message: &str) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for line in message.lines() {
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        let (key, value) = (key.trim_end(), value.trim().to_owned());
        if key.eq_ignore_ascii_case(apply::RUN) {
            claims.push(Claim { run: value, ..Claim::default() });
        } else if key.eq_ignore_ascii_case(apply::ITEM) {
            match claims.last_mut() {
                Some(last) if last.item.is_none() => last.item = Some(value),
                last => {
                    let run = last.map(|last| last.run.clone()).unwrap_or_default();
                    claims.push(Claim { run, item: Some(value), product: None });
                }
            }
        } else if key.eq_ignore_ascii_case(apply::PRODUCT) {
            match claims.last_mut() {
                Some(last) if last.product.is_none() => last.product = Some(value),
                _ => claims.push(Claim { product: Some(value), ..Claim::default() }),
            }
        }
    }
    let mut once: Vec<Claim> = Vec::new();
    for claim in claims {
        if !once.contains(&claim) {
            once.push(claim);
        }
    }
    once
}

/// Parses the items `<run>/<item>` whose conflicts were resolved; they have no digest.
fn resolved(message: &str) -> Vec<String> {
    let lines = message.lines().filter_map(|line| line.trim().split_once(':'));
    let trailers = lines.filter(|(key, _)| key.trim_end().eq_ignore_ascii_case(apply::RESOLVED));
    trailers.filter_map(|(_, value)| value.split_whitespace().next().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_wherever_they_stand() {
        let one =
            "a, b: apply\n\nHandoff-Run: r\nHandoff-Item: a\nHandoff-Product: 1\nHandoff-Item: b\nHandoff-Product: 2\n";
        let two = [make_claim("r", Some("a"), Some("1")), make_claim("r", Some("b"), Some("2"))];
        assert_eq!(claims(one), two);
        let squashed = "Squash\n\n    x\n\n    handoff-run: r\n    Handoff-Item: a\n    Handoff-Product: 1\n\nHandoff-Run: s\n\nHandoff-Run: s\n";
        assert_eq!(claims(squashed), [two[0].clone(), make_claim("s", None, None)]);
        assert_eq!(claims("Handoff-Item: a\nHandoff-Product: 1\nHandoff-Product: 2").len(), 2);
        assert_eq!(claims("Fix: the Handoff-Run\n\nSigned-off-by: x"), []);
    }

    fn make_claim(run: &str, item: Option<&str>, product: Option<&str>) -> Claim {
        Claim { run: run.into(), item: item.map(Into::into), product: product.map(Into::into) }
    }
}
