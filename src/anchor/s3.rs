//! The anchor `s3`: one small object for each sealed run, put under Object Lock in compliance mode. Of an object's versions
//! the earliest counts: nobody can take it away, and whatever was put over it came later.

mod wire;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::digest::{Digest, Oid};
use crate::model::format;
use crate::model::name::{RunId, encode_segment};
use crate::model::time::Moment;
use crate::verify::{Guarantee, Held, Question, Seal};

use super::credentials::{self, Named};
use super::{Error, Holdings, Means, Published, Sealing, Unsure};

pub use wire::Error as WireError;
use wire::{Bucket, Stored};

/// The schema of an object.
const SCHEMA: &str = "git-handoff.anchor/1";

/// Where objects lie in a bucket unless the configuration says otherwise.
pub(super) const PREFIX: &str = "git-handoff/";

/// How many days an object is kept from everybody unless the configuration says otherwise.
pub(super) const RETENTION_DAYS: u64 = 3650;

/// More keys than this are not asked about: each takes a question of its own.
pub(super) const MOST_KEYS: usize = 256;

const DAY: u64 = 24 * 60 * 60 * 1000;

/// A bucket, and how it is used.
pub struct S3Place {
    pub(super) bucket: String,
    pub(super) prefix: String,
    pub(super) endpoint: Option<String>,
    pub(super) region: Option<String>,
    pub(super) named: Named,
    pub(super) retention_days: u64,
}

/// What an object holds, in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    schema: String,
    run: RunId,
    root: Digest,
    entries: u64,
    seal: Digest,
    commit: Oid,
    fingerprint: String,
}

/// What was found of a run.
struct Found {
    object: Object,
    stored: Stored,
}

/// What was found of a run, with what it is worth.
pub(super) struct Answered {
    pub(super) held: Vec<Held>,
    pub(super) guarantee: Guarantee,
    pub(super) since: Option<Moment>,
    pub(super) notes: Vec<String>,
}

impl S3Place {
    pub(super) fn shown(&self) -> String {
        let at = self.endpoint.as_ref().map(|endpoint| format!(" at {endpoint}")).unwrap_or_default();
        format!("s3://{}/{}{at}", self.bucket, self.prefix)
    }

    fn open(&self, means: &Means, within: Duration) -> Result<Bucket, Error> {
        let around = &means.environment;
        let region = self.region.as_deref().or_else(|| around.get("AWS_REGION"));
        let region = region.or_else(|| around.get("AWS_DEFAULT_REGION")).unwrap_or("us-east-1");
        let credentials = credentials::find(&self.named, around)?;
        Ok(Bucket::new(&self.bucket, self.endpoint.as_deref(), region, credentials, within, means.clock)?)
    }

    pub(super) fn probe(&self, means: &Means, within: Duration) -> Result<(), Error> {
        let bucket = self.open(means, within)?;
        bucket.check_lock()?;
        Ok(bucket.check_list(&self.prefix)?)
    }

    /// Returns the key of what a writer says of a run: like their refs, with `!` in the place of `%`.
    fn key(&self, fingerprint: &str, run: &RunId) -> String {
        format!("{}{}.json", self.folder(fingerprint), run.encoded().replace('%', "!"))
    }

    /// Returns what the keys of all objects of a writer begin with.
    fn folder(&self, fingerprint: &str) -> String {
        format!("{}{}/", self.prefix, encode_segment(fingerprint).replace('%', "!"))
    }

    fn find(&self, bucket: &Bucket, fingerprint: &str, run: &RunId) -> Result<Option<Found>, Error> {
        let Some(stored) = bucket.earliest(&self.key(fingerprint, run))? else { return Ok(None) };
        let object: Option<Object> = serde_json::from_slice(&stored.bytes).ok();
        let object =
            object.filter(|object: &Object| object.schema == SCHEMA && format::canonical(object) == stored.bytes);
        let object = object.ok_or(Error::NotOurs)?;
        if object.run != *run || object.fingerprint != fingerprint {
            return Err(Error::Elsewhere { run: object.run, fingerprint: object.fingerprint });
        }
        Ok(Some(Found { object, stored }))
    }

    pub(super) fn ask(&self, means: &Means, within: Duration, question: &Question<'_>) -> Result<Answered, Error> {
        let bucket = self.open(means, within)?;
        let mut answered =
            Answered { held: Vec::new(), guarantee: Guarantee::ExternalImmutable, since: None, notes: Vec::new() };
        let keys = question.keys();
        if keys.len() > MOST_KEYS {
            return Err(Error::TooManyKeys);
        }
        for key in keys {
            let Some(Found { object, stored }) = self.find(&bucket, key, question.run)? else { continue };
            let Object { root, entries, seal, commit, fingerprint, .. } = object;
            answered.held.push(Held { key: fingerprint, seal: Seal { root, entries, seal, commit } });
            // What holds of an object that holds the run is of no concern about one that speaks against it.
            if !question.writers.iter().any(|writer| writer == key) {
                continue;
            }
            if let Some(why) = stored.is_loose(means.clock.now()) {
                answered.guarantee = Guarantee::External;
                answered.notes.push(why);
            }
            if stored.later > 0 {
                answered.notes.push(format!("{} put over it later, which do not count", plural(stored.later)));
            }
            answered.since = answered.since.max(Some(stored.at));
        }
        Ok(answered)
    }

    /// Returns the runs of which something lies there under a key, whatever it is.
    pub(super) fn holdings(&self, means: &Means, within: Duration, key: &str) -> Result<Holdings, Error> {
        let folder = self.folder(key);
        let run = |object: &String| {
            let segment = object.strip_prefix(&folder)?.strip_suffix(".json")?.replace('!', "%");
            RunId::decode(&segment)
        };
        let objects = self.open(means, within)?.objects(&folder)?;
        Ok(Holdings { runs: objects.iter().filter_map(run).collect(), ..Holdings::default() })
    }

    /// Puts what is not there yet, once the run was found sound: what is put can never be taken back.
    pub(super) fn publish(
        &self,
        means: &Means,
        within: Duration,
        sealings: &[Sealing],
        unsure: Unsure<'_>,
    ) -> Result<Vec<Published>, Error> {
        let bucket = self.open(means, within)?;
        let mut published = Vec::new();
        for sealing in sealings {
            let Seal { root, entries, seal, commit } = sealing.seal;
            let fingerprint = sealing.fingerprint.clone();
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
                unsure(&sealing.run)?;
                let until = means.clock.now().plus_millis(self.retention_days * DAY);
                bucket.put(&self.key(&sealing.fingerprint, &sealing.run), &format::canonical(&object), until)?;
                // Somebody may have been faster, and only what is there first counts.
                found = self.find(&bucket, &sealing.fingerprint, &sealing.run)?;
                status = "new";
            }
            let held = found.ok_or_else(|| Error::NotKept(sealing.run.clone()))?.object;
            if held != object {
                return Err(Error::Differs { run: sealing.run.clone(), held: held.root, ours: root });
            }
            published.push(Published { kind: "run", name: sealing.run.to_string(), status });
        }
        Ok(published)
    }
}

fn plural(later: usize) -> String {
    if later == 1 {
        "1 version or delete marker was".to_owned()
    } else {
        format!("{later} versions or delete markers were")
    }
}
