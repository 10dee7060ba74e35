//! The facts of a sealed run that the formats of other tools are made of, read once.

use serde::Serialize;
use serde_json::{Value, json};

use crate::git::remote::{self, Remotes};
use crate::git::store::Store;
use crate::model::claims::Reported;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, ItemFired, ItemReconciled};
use crate::model::item_index::{ItemIndex, ItemVec};
use crate::model::manifest::Manifest;
use crate::model::name::ItemId;
use crate::run::query::attempts::AttemptShown;
use crate::run::query::sharing::Sharing;
use crate::run::query::show::{RunDocument, Step};
use crate::run::query::{Target, VerifiedRun};

use super::Error;

/// The sentence that every record has about itself, in a field of its own.
pub(super) const ABOUT: &str = "The evidence is the run, not this record: `git handoff verify` checks it. \
    Names of agents, models and sessions, and numbers of tokens and prices, are claims of the worker.";

/// A sealed run.
pub(super) struct Facts<'a> {
    pub(super) store: &'a Store,
    pub(super) run: &'a VerifiedRun,
    pub(super) document: RunDocument<'a>,
    /// In the order of their dispatches.
    pub(super) attempts: Vec<Attempt<'a>>,
    /// The attempts of each item, by position.
    of_items: ItemVec<Vec<usize>>,
    pub(super) origin: Origin,
}

/// An attempt with its manifest and its end.
pub(super) struct Attempt<'a> {
    pub(super) summary: AttemptShown<'a>,
    pub(super) at: ItemIndex,
    pub(super) fired: &'a ItemFired,
    pub(super) manifest: Manifest,
    /// The entry of its end, or `None` if the run was sealed while it ran.
    pub(super) end: Option<Step<'a>>,
}

/// The place of the evidence.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin {
    pub(super) run: String,
    #[serde(rename = "ref")]
    pub(super) reference: String,
    /// The commit of the seal.
    pub(super) commit: Oid,
    /// The leaf hash of the seal.
    pub(super) seal: Digest,
    /// The root in the seal.
    pub(super) root: Digest,
    /// The URL of a remote that has the run, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remote: Option<String>,
    pub(super) about: &'static str,
}

impl<'a> Facts<'a> {
    /// Reads the facts of a verified run.
    pub(super) fn read(store: &'a Store, run: &'a VerifiedRun, target: &'a Target) -> Result<Self, Error> {
        let document = RunDocument::new(run, &target.reference);
        let mut attempts = Vec::new();
        let mut of_items = run.state.items.map(|_| Vec::new());
        for summary in AttemptShown::all(run) {
            let Event::ItemFired(fired) = &summary.fired.entry.event else { continue };
            let Some(at) = run.state.graph.position(&fired.item) else { continue };
            let manifest = super::read_manifest(store, fired)?;
            let end = summary.ended.and_then(|link| Step::from_link(link, &fired.item, &run.state));
            of_items[at].push(attempts.len());
            attempts.push(Attempt { summary, at, fired, manifest, end });
        }
        let origin = Origin::find(store, run, target)?;
        Ok(Self { store, run, document, attempts, of_items, origin })
    }

    /// Returns the id of an item.
    pub(super) fn id(&self, at: ItemIndex) -> &'a ItemId {
        &self.run.state.graph.item(at).id
    }

    /// Returns the attempts of an item, oldest first.
    pub(super) fn attempts_of(&self, at: ItemIndex) -> impl DoubleEndedIterator<Item = &Attempt<'a>> {
        self.of_items[at].iter().map(|position| &self.attempts[*position])
    }

    /// Returns the attempt whose products are the item's, or `None` if it has none.
    pub(super) fn result_of(&self, at: ItemIndex) -> Option<&Attempt<'a>> {
        self.attempts_of(at).rfind(|attempt| attempt.summary.status == "done")
    }
}

impl<'a> Attempt<'a> {
    /// Returns the end with a final result, or `None` for any other end.
    pub(super) fn result(&self) -> Option<&'a ItemReconciled> {
        self.end.as_ref()?.link.entry.event.end_of(&self.fired.item)
    }

    /// Returns the leaf hash of the entry of its end, or of its dispatch.
    pub(super) fn entry(&self) -> Digest {
        self.end.as_ref().map_or(self.summary.fired.hash, |end| end.link.hash)
    }

    /// Returns the worker's claims about itself.
    pub(super) fn claims(&self) -> Option<&Reported> {
        self.end.as_ref()?.claims.as_ref()
    }

    /// Returns the reason of its end, or the result of its check.
    pub(super) fn reason(&self) -> Option<&str> {
        self.end.as_ref()?.reason.as_deref()
    }

    /// Returns the name of its agent: the subagent, or the executor.
    pub(super) fn agent(&self) -> &str {
        self.manifest.subagent.as_deref().unwrap_or(&self.manifest.executor)
    }

    /// Returns true if its worker reported a model or a session.
    pub(super) fn is_by_model(&self) -> bool {
        self.claims().is_some_and(|claims| claims.model.is_some() || claims.session.is_some())
    }

    /// Returns its result in a word: `retried`, `red`, or the status that it gave the item.
    pub(super) fn word(&self) -> &'static str {
        match (self.summary.status, self.summary.red) {
            ("pending", _) => "retried",
            (_, true) => "red",
            (status, false) => status,
        }
    }

    /// Returns what the record of an item says about its attempt.
    pub(super) fn details(&self, facts: &Facts<'_>) -> Value {
        let mut details = json!({
            "item": self.fired.item,
            "attempt": self.fired.attempt,
            "entry": self.entry(),
            "actor": self.summary.actor,
            "executor": self.manifest.executor,
            "sandbox": self.manifest.claims.sandbox,
            "status": self.word(),
        });
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                details[name] = value;
            }
        };
        put("subagent", json!(self.manifest.subagent));
        put("reason", json!(self.reason()));
        put("claims", json!(self.claims()));
        put("supersededBy", json!(facts.run.state.replaced_by(self.at)));
        if let Some(result) = self.result() {
            put("grade", json!(result.grade));
            put("reused", json!(result.reused));
        }
        details
    }
}

impl Origin {
    fn find(store: &Store, run: &VerifiedRun, target: &Target) -> Result<Self, Error> {
        let seal = run.links.iter().rev().find_map(|link| match &link.entry.event {
            Event::RunSealed(sealed) => Some((link, sealed.root)),
            _ => None,
        });
        let (link, root) = seal.ok_or(Error::Open)?;
        Ok(Self {
            run: run.run.to_string(),
            reference: target.reference.clone(),
            commit: link.commit,
            seal: link.hash,
            root,
            remote: remote(store, run, target),
            about: ABOUT,
        })
    }

    /// Returns the fields as names and texts, for formats that have only those.
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![
            ("run", self.run.clone()),
            ("ref", self.reference.clone()),
            ("commit", self.commit.to_string()),
            ("seal", self.seal.to_string()),
            ("root", self.root.to_string()),
        ];
        pairs.extend(self.remote.iter().map(|remote| ("remote", remote.clone())));
        pairs.push(("about", self.about.to_owned()));
        pairs
    }
}

/// Returns the URL of the remote that a run was fetched from or is shared through, without its
/// user and password. Returns `None` for folders of this machine.
fn remote(store: &Store, run: &VerifiedRun, target: &Target) -> Option<String> {
    let word = target.remote().or_else(|| Sharing::read(store, &run.run).map(|sharing| sharing.remote))?;
    let found = Remotes::read(store).ok()?.find(&word).ok()?;
    let url = remote::fetch_url(store, &found).ok()?;
    match url.split_once("://") {
        Some(("file", _)) => None,
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            Some(format!("{scheme}://{host}{path}"))
        }
        // As git reads `user@host:path`.
        None => {
            let (host, _) = url.split_once(':')?;
            (!host.contains('/')).then(|| url.clone())
        }
    }
}

/// Returns the version 8 UUID with the first bytes of a digest.
pub(super) fn uuid(digest: &Digest) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = crate::model::digest::hex(&bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
