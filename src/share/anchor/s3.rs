//! The anchor `s3`, and every kind with a program of its own, which answers like S3: one small
//! object for each sealed run, and for each length of a thread. `s3` puts them under Object Lock in
//! compliance mode. Only the earliest version of an object counts: it cannot be removed, and all
//! other versions came later.

pub(crate) mod threads;
mod wire;
mod xml;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::git::remote::without_password;
use crate::model::any_error::AnyError;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Subject;
use crate::model::format;
use crate::model::name::{RunId, encode_segment};
use crate::verify::{Answer, Guarantee, Held, Question, Seal, ThreadAnswer, ThreadQuestion};

use super::kind::{AnchorAnswer, AnchorKind, Evidence, Holdings, Published, Unsure};
use super::program::Program;
use super::settings::{SettingError, Settings};
use super::{Error, Means};

use wire::{Bucket, Stored};
pub use wire::{Error as WireError, SKEWED};

/// The kind that promises to lock objects.
const S3: &str = "s3";

/// The schema of an object.
const SCHEMA: &str = "git-handoff.anchored/1";

/// The default prefix of objects.
const PREFIX: &str = "git-handoff/";

/// The default retention period in days.
const RETENTION_DAYS: u64 = 3650;

/// The maximum number of keys to ask about: each takes a request.
const MOST_KEYS: usize = 256;

const DAY: u64 = 24 * 60 * 60 * 1000;

/// A bucket with its options.
pub(super) struct S3Place {
    kind: String,
    program: Program,
    /// The settings for the program.
    options: Vec<(&'static str, String)>,
    prefix: String,
    retention_days: u64,
}

/// The content of an object, in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Object {
    #[cfg_attr(feature = "schemas", schemars(extend("const" = "git-handoff.anchored/1")))]
    schema: String,
    /// The run.
    run: RunId,
    /// The root that it was sealed with.
    root: Digest,
    /// The number of entries that the root is over.
    entries: u64,
    /// The leaf hash of the seal.
    seal: Digest,
    /// Its commit.
    commit: Oid,
    /// The key that sealed it.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    fingerprint: String,
}

/// The result of a lookup.
struct Found {
    object: Object,
    stored: Stored,
}

impl S3Place {
    /// Parses the settings of a kind with its program.
    pub(super) fn read(kind: &str, program: Program, settings: &mut Settings<'_>) -> Result<Self, SettingError> {
        let place = if kind == S3 { "bucket" } else { "url" };
        let mut options = vec![(place, settings.required(place)?.to_owned())];
        let prefix = settings.take("prefix").unwrap_or(PREFIX).to_owned();
        if !prefix.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
            || prefix.starts_with('/')
            || prefix.contains("//")
        {
            return Err(settings.bad("prefix", "is not made of letters, digits, `-`, `_`, `.` and `/`"));
        }
        let of_s3 = ["endpoint", "region", "profile", "credentials"].into_iter().filter(|_| kind == S3);
        options.extend(of_s3.filter_map(|key| Some((key, settings.take(key)?.to_owned()))));
        if options.iter().any(|(key, value)| *key == "endpoint" && !safe(value)) {
            return Err(settings.bad(
                "endpoint",
                "is neither an https:// URL nor one of this machine: answers could be changed on the way",
            ));
        }
        let retention_days = match settings.take("retentiondays").map(str::parse) {
            None => RETENTION_DAYS,
            Some(Ok(days @ 1..=36_500)) => days,
            Some(_) => return Err(settings.bad("retentionDays", "is not between 1 and 36500")),
        };
        Ok(Self { kind: kind.to_owned(), program, options, prefix, retention_days })
    }
}

impl AnchorKind for S3Place {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn address(&self) -> String {
        let (_, place) = &self.options[0];
        if self.kind != S3 {
            return format!("{} {}", without_password(place), self.prefix);
        }
        let endpoint = self.options.iter().find(|(key, _)| *key == "endpoint");
        let at = endpoint.map(|(_, endpoint)| format!(" at {endpoint}")).unwrap_or_default();
        format!("s3://{place}/{}{at}", self.prefix)
    }

    /// The lock is checked with every answer; the configuration can only lower the guarantee.
    fn claims(&self) -> Option<Guarantee> {
        Some(if self.kind == S3 { Guarantee::ExternalImmutable } else { Guarantee::External })
    }

    fn ask(&self, means: &Means, within: Duration, question: &Question<'_>) -> Result<AnchorAnswer, AnyError> {
        let bucket = self.open(means, within);
        let (mut seals, mut answer) = (Vec::new(), AnchorAnswer::from(Answer::None(String::new())));
        let keys = question.keys();
        if keys.len() > MOST_KEYS {
            return Err(Error::TooManyKeys(MOST_KEYS).into());
        }
        for key in keys {
            let Some(Found { object, stored }) = self.find(&bucket, key, question.run)? else { continue };
            let Object { root, entries, seal, commit, fingerprint, .. } = object;
            seals.push(Held { key: fingerprint, seal: Seal { root, entries, seal, commit } });
            // The lock of a matching object does not matter for a contradicting one.
            if !question.writers.iter().any(|writer| writer == key) {
                continue;
            }
            if let Some(why) = stored.is_loose(means.clock.now()) {
                answer.at_most = Guarantee::External;
                answer.notes.push(why);
            }
            if stored.later > 0 {
                answer.notes.push(format!("{} put over it later, which do not count", plural(stored.later)));
            }
            answer.since = answer.since.max(Some(stored.at));
        }
        Ok(AnchorAnswer { answer: Answer::Seals(seals), ..answer })
    }

    /// Returns the runs and threads with an object of a key, whatever its content.
    fn holdings(&self, means: &Means, within: Duration, key: &str) -> Result<Holdings, AnyError> {
        let folder = self.folder(key);
        let objects = self.open(means, within).objects(&folder)?;
        let threads = objects.iter().filter_map(|object| threads::parse(&folder, object)).map(|(thread, _)| thread);
        let (runs, threads) = (
            objects
                .iter()
                .filter_map(|object| {
                    let segment = object.strip_prefix(&folder)?.strip_suffix(".json")?.replace('!', "%");
                    RunId::decode(&segment)
                })
                .collect(),
            threads.collect(),
        );
        Ok(Holdings { runs, threads, ..Holdings::default() })
    }

    fn ask_thread(
        &self,
        means: &Means,
        within: Duration,
        question: &ThreadQuestion<'_>,
    ) -> Result<ThreadAnswer, AnyError> {
        self.thread_word(&self.open(means, within), means.clock.now(), question)
    }

    fn probe(&self, means: &Means, within: Duration) -> Result<(), AnyError> {
        let bucket = self.open(means, within);
        bucket.check_lock()?;
        Ok(bucket.check_list(&self.prefix)?)
    }

    /// Stores missing objects, after verifying the run, because they cannot be removed.
    fn publish(
        &self,
        means: &Means,
        within: Duration,
        evidence: &Evidence,
        unsure: Unsure<'_>,
    ) -> Result<Vec<Published>, AnyError> {
        let bucket = self.open(means, within);
        let mut published = Vec::new();
        for sealing in &evidence.sealings {
            let Seal { root, entries, seal, commit } = sealing.seal;
            let fingerprint = sealing.fingerprint.clone();
            let subject = Subject::Run(sealing.run.clone());
            let object = Object {
                schema: SCHEMA.to_owned(),
                run: sealing.run.clone(),
                root,
                entries,
                seal,
                commit,
                fingerprint,
            };
            let mut status = "up-to-date";
            let mut found = self.find(&bucket, &sealing.fingerprint, &sealing.run)?;
            if found.is_none() {
                unsure(&subject)?;
                self.put(&bucket, means, &self.key(&sealing.fingerprint, &sealing.run), &object)?;
                // Another writer may have been faster, and only the earliest version counts.
                found = self.find(&bucket, &sealing.fingerprint, &sealing.run)?;
                status = "new";
            }
            let Found { object: existing, stored } = found.ok_or_else(|| Error::NotKept(subject.clone()))?;
            let why = stored.is_loose(means.clock.now()).filter(|_| status == "new" && existing == object);
            if let Some(why) = why {
                return Err(Error::NotLocked(subject, why).into());
            }
            if existing != object {
                return Err(Error::Differs { run: sealing.run.clone(), stored: existing.root, ours: root }.into());
            }
            published.push(Published { kind: "run", name: sealing.run.to_string(), status });
        }
        for tip in &evidence.threads {
            published.push(self.publish_thread(&bucket, means, tip, unsure)?);
        }
        Ok(published)
    }
}

impl S3Place {
    fn open<'a>(&'a self, means: &'a Means, within: Duration) -> Bucket<'a> {
        let Self { program, options, .. } = self;
        Bucket { program, options, locks: self.kind == S3, means, within }
    }

    /// Puts an object in canonical form, locked for the retention period.
    fn put<T: Serialize>(&self, bucket: &Bucket<'_>, means: &Means, key: &str, object: &T) -> Result<(), AnyError> {
        let until = means.clock.now().plus_millis(self.retention_days * DAY);
        Ok(bucket.put(key, &format::canonical(object), until)?)
    }

    /// Returns the object key of a writer's run: like its ref, with `!` in place of `%`.
    fn key(&self, fingerprint: &str, run: &RunId) -> String {
        format!("{}{}.json", self.folder(fingerprint), run.encoded().replace('%', "!"))
    }

    /// Returns the prefix of a writer's object keys.
    fn folder(&self, fingerprint: &str) -> String {
        format!("{}{}/", self.prefix, encode_segment(fingerprint).replace('%', "!"))
    }

    fn find(&self, bucket: &Bucket<'_>, fingerprint: &str, run: &RunId) -> Result<Option<Found>, AnyError> {
        let Some(stored) = bucket.earliest(&self.key(fingerprint, run))? else { return Ok(None) };
        let object = parse_object(&stored.bytes).filter(|object: &Object| object.schema == SCHEMA);
        let object = object.ok_or(Error::NotOurs("run"))?;
        if object.run != *run || object.fingerprint != fingerprint {
            return Err(Error::Elsewhere { run: object.run, fingerprint: object.fingerprint }.into());
        }
        Ok(Some(Found { object, stored }))
    }
}

/// Parses an object, or returns `None` unless the bytes are in canonical form.
fn parse_object<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok().filter(|object| format::canonical(object) == bytes)
}

/// Returns true if the connection is protected against changes.
fn safe(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return url.starts_with("https://") };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    ["localhost", "127.0.0.1", "[::1]"].into_iter().any(|own| {
        host.strip_prefix(own).is_some_and(|after| {
            after.is_empty() || after.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
        })
    })
}

fn plural(later: usize) -> String {
    if later == 1 {
        "1 version or delete marker was".to_owned()
    } else {
        format!("{later} versions or delete markers were")
    }
}
