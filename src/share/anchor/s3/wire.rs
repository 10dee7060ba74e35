//! S3 requests and answers. A program sends them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64ct::{Base64, Encoding as _};

use super::xml::{self, Listed, Lock};
use crate::model::digest::Digest;
use crate::model::printable::line;
use crate::model::time::Moment;
use crate::share::anchor::Means;
use crate::share::anchor::program::{self, Program, Reply, shorten};

/// S3's error code for a clock difference.
pub const SKEWED: &str = "RequestTimeTooSkewed";

/// The maximum size of a list of versions or an object, in bytes.
const LONGEST: u64 = 4 << 20;

/// The maximum number of pages of versions of an object, because any writer can add some.
const MOST_PAGES: usize = 20;

/// The maximum number of pages of all objects of a key.
const MOST_PAGES_OF_ALL: usize = 1000;

/// A bucket that is being asked.
pub(super) struct Bucket<'a> {
    pub(super) program: &'a Program,
    /// The settings for the program.
    pub(super) options: &'a [(&'static str, String)],
    /// Whether it promises to lock objects.
    pub(super) locks: bool,
    pub(super) means: &'a Means,
    pub(super) within: Duration,
}

/// The listed versions of one object.
#[derive(Default)]
struct Versions {
    /// Time, id and size of each version, newest first.
    versions: Vec<(Moment, String, Option<u64>)>,
    /// The number of delete markers.
    markers: usize,
}

/// The earliest version of an object.
pub(super) struct Stored {
    pub(super) bytes: Vec<u8>,
    /// The time by S3's clock.
    pub(super) at: Moment,
    /// The number of later versions and delete markers.
    pub(super) later: usize,
    mode: Option<String>,
    until: Option<Moment>,
    /// Whether its bucket promises to lock objects.
    locks: bool,
}

impl Stored {
    /// Returns the reason why it could be deleted now, if it could.
    pub(super) fn is_loose(&self, now: Moment) -> Option<String> {
        match (self.mode.as_deref(), self.until) {
            (Some("COMPLIANCE"), Some(until)) if until > now => None,
            (Some("COMPLIANCE"), Some(until)) => Some(format!("its retention ended at {until}")),
            (Some(mode), _) => Some(format!("its retention mode is {}, which can be lifted", line(mode))),
            (None, _) if !self.locks => None,
            (None, _) => Some("it is under no retention".to_owned()),
        }
    }
}

impl Bucket<'_> {
    /// Sends a request about an object or the bucket; the query must be sorted by name.
    fn ask(&self, op: &str, object: &str, query: &[(&str, &str)], put: Option<(&[u8], &str)>) -> Result<Reply, Error> {
        let query_text: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={}", encoded(value, b"-._~"))).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let target = format!("{}{mark}{}", encoded(object, b"/-._~"), query_text.join("&"));
        let (bytes, until) = put.unwrap_or_default();
        let (digest, body) = (Digest::compute(bytes), Base64::encode_string(bytes));
        let (sha256, checksum) = (digest.hex(), Base64::encode_string(digest.as_bytes()));
        let own = [("op", op), ("key", object), ("target", &target), ("sha256", &sha256)];
        let content = [("body", body.as_str()), ("checksum", &checksum), ("until", until)];
        let options: Vec<(&str, &str)> = self.options.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let content = if put.is_some() { &content[..] } else { &[] };
        let request = [options.as_slice(), query, &own, content].concat();
        Ok(self.program.ask(self.means, self.within, LONGEST, &request)?)
    }

    fn get(&self, op: &str, object: &str, query: &[(&str, &str)]) -> Result<Reply, Error> {
        let reply = self.ask(op, object, query, None)?;
        // Some servers send an error with status 200.
        let is_answer = reply.status == 200 && (!object.is_empty() || xml::refusal(&reply.body).is_none());
        if is_answer { Ok(reply) } else { Err(self.refused(&reply)) }
    }

    /// Checks that the bucket can lock objects, if permitted to ask.
    pub(super) fn check_lock(&self) -> Result<(), Error> {
        if !self.locks {
            return Ok(());
        }
        let reply = match self.get("lock", "", &[("object-lock", "")]) {
            Err(Error::Refused { status: 403, .. }) => return Ok(()),
            Err(Error::Refused { code, .. }) if code.starts_with("ObjectLockConfigurationNotFound") => {
                return Err(Error::NoLock);
            }
            other => other?,
        };
        let lock: Lock = xml::read(&reply.body)?;
        if lock.enabled.as_deref() == Some("Enabled") { Ok(()) } else { Err(Error::NoLock) }
    }

    /// Checks that versions can be listed.
    pub(super) fn check_list(&self, prefix: &str) -> Result<(), Error> {
        self.page(prefix, None).map(drop)
    }

    fn page(&self, prefix: &str, from: Option<&(String, String)>) -> Result<Listed, Error> {
        let mut query = vec![("max-keys", "1000"), ("prefix", prefix), ("versions", "")];
        if let Some((key, version)) = from {
            query.extend([("key-marker", key.as_str()), ("version-id-marker", version.as_str())]);
            query.sort_unstable();
        }
        let listed: Listed = xml::read(&self.get("list", "", &query)?.body)?;
        listed.answering(prefix)
    }

    /// Returns the names of all objects in a folder, including deleted ones.
    pub(super) fn objects(&self, folder: &str) -> Result<BTreeSet<String>, Error> {
        let mut names = BTreeSet::new();
        let mut from = None;
        for _ in 0..MOST_PAGES_OF_ALL {
            let listed = self.page(folder, from.as_ref())?;
            names.extend(listed.versions.iter().map(|version| version.key.clone()));
            from = listed.next()?;
            if from.is_none() {
                return Ok(names);
            }
        }
        Err(Error::TooManyObjects)
    }

    /// Returns the earliest version of an object, and counts later versions and delete markers.
    pub(super) fn earliest(&self, key: &str) -> Result<Option<Stored>, Error> {
        // Another object's name may have this prefix.
        let versions = self.versions(key, &|name| name == key)?.ok_or(Error::TooMany("one object"))?;
        let versions = versions.into_iter().next().map(|(_, versions)| versions).unwrap_or_default();
        self.first_of(key, versions)
    }

    /// Returns the earliest version of each object below a folder whose name passes, by name, as
    /// [`Bucket::earliest`] does.
    pub(super) fn earliest_below(
        &self,
        folder: &str,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<(String, Stored)>, Error> {
        let objects = self.versions(folder, is_wanted)?.ok_or(Error::TooMany("the objects of one thread"))?;
        let read = |(key, versions): (String, Versions)| Ok(self.first_of(&key, versions)?.map(|stored| (key, stored)));
        objects.into_iter().filter_map(|object| read(object).transpose()).collect()
    }

    /// Returns the versions of all objects whose names begin so and pass, or `None` if there are
    /// too many to be listed.
    fn versions(
        &self,
        prefix: &str,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Option<BTreeMap<String, Versions>>, Error> {
        let mut objects: BTreeMap<String, Versions> = BTreeMap::new();
        let mut from = None;
        for _ in 0..MOST_PAGES {
            let listed = self.page(prefix, from.as_ref())?;
            for marker in listed.markers.iter().filter(|marker| is_wanted(&marker.key)) {
                objects.entry(marker.key.clone()).or_default().markers += 1;
            }
            for version in listed.versions.iter().filter(|version| is_wanted(&version.key)) {
                let found = (moment(&version.at)?, version.id.clone(), version.size);
                objects.entry(version.key.clone()).or_default().versions.push(found);
            }
            from = listed.next()?;
            if from.is_none() {
                return Ok(Some(objects));
            }
        }
        Ok(None)
    }

    /// Reads the earliest of the versions of an object, or returns `None` if it has delete markers
    /// alone.
    fn first_of(&self, key: &str, Versions { versions, markers }: Versions) -> Result<Option<Stored>, Error> {
        let later = (versions.len() + markers).saturating_sub(1);
        // Newest first; of two with the same time, the last listed is the earliest.
        let earliest = versions.into_iter().rev().min_by_key(|(at, ..)| *at);
        let Some((at, version, size)) = earliest else { return Ok(None) };
        let stored = self.read(key, at, &version, later)?;
        if let Some(size) = size.filter(|size| *size != stored.bytes.len() as u64) {
            let why = format!("an object of {} bytes came, and {size} are listed", stored.bytes.len());
            return Err(Error::answer(&why));
        }
        Ok(Some(stored))
    }

    fn read(&self, key: &str, at: Moment, version: &str, later: usize) -> Result<Stored, Error> {
        let reply = self.get("get", key, &[("versionId", version)])?;
        if reply.header("x-amz-version-id").is_some_and(|given| given != version) {
            return Err(Error::answer("it is another version than the one that was asked for"));
        }
        let mode = reply.header("x-amz-object-lock-mode").map(str::to_owned);
        let until = reply.header("x-amz-object-lock-retain-until-date").map(moment).transpose()?;
        Ok(Stored { mode, until, at, later, locks: self.locks, bytes: reply.body })
    }

    /// Stores an object that cannot be changed or deleted before a time.
    pub(super) fn put(&self, key: &str, bytes: &[u8], until: Moment) -> Result<(), Error> {
        let until = jiff::Timestamp::from_second(until.seconds()).map_err(|_| Error::TooFar)?.to_string();
        let reply = self.ask("put", key, &[], Some((bytes, &until)))?;
        // Some servers answer with 201 or 204, and some send an error with status 200.
        let is_taken = reply.is_success() && xml::refusal(&reply.body).is_none();
        if is_taken { Ok(()) } else { Err(self.refused(&reply)) }
    }

    fn refused(&self, reply: &Reply) -> Error {
        let refusal = xml::refusal(&reply.body);
        let (code, mut message) =
            refusal.map_or(("nothing".into(), "no reason given".into()), |refusal| (refusal.code, refusal.message));
        if let Some(dated) = reply.header("date").filter(|_| code == SKEWED) {
            message = format!("{message} Its answer is dated {dated}, and it is {} here.", self.means.clock.now());
        }
        Error::Refused { status: reply.status, code: shorten_line(&code), message: shorten_line(&message) }
    }
}

fn shorten_line(text: &str) -> String {
    line(&text.chars().take(200).collect::<String>())
}

/// Encodes a text for a URL, except for letters, digits and some other bytes.
fn encoded(text: &str, plain: &[u8]) -> String {
    text.bytes()
        .map(|byte| match byte {
            _ if byte.is_ascii_alphanumeric() || plain.contains(&byte) => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn moment(text: &str) -> Result<Moment, Error> {
    let stamp: jiff::Timestamp =
        text.parse().map_err(|_| Error::answer(&format!("it has {text:?} in the place of a time")))?;
    Ok(Moment::from_millis(stamp.as_millisecond()))
}

errors! {
    /// The reason for a failed request.
    #[derive(Debug, thiserror::Error)] pub enum Error = "s3";
    NoLock "no-object-lock": "the bucket has no Object Lock, so its writers could change the objects";
    Answer(String): "the answer is not one of S3's: {0}";
    TooFar: "the date until which the object is to be retained is too far away";
    TooMany(&'static str): "there are more than {most} versions of {0}" [most = MOST_PAGES * 1000];
    TooManyObjects: "there are more than {} versions of objects of one key" [MOST_PAGES_OF_ALL * 1000];
    Refused { status: u16, code: String, message: String }: "S3 answers {code} (status {status}): {message}";
    #[from "s3"] Program(program::Error);
}

impl Error {
    /// Returns the error for an unexpected answer.
    pub(super) fn answer(why: &str) -> Self {
        Self::Answer(shorten(why))
    }
}
