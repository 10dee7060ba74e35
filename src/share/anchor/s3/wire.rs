//! S3 requests and responses. Requests are signed in their URL, which is never shown.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64ct::{Base64, Encoding as _};
use rusty_s3::{Credentials, Method, UrlStyle};

use super::xml::{self, Listed, Lock};
use crate::clock::Clock;
use crate::model::digest::Digest;
use crate::model::printable::line;
use crate::model::time::Moment;
use crate::share::anchor::http::{self, Client, Reply, StatusCode};

/// S3's error code for a clock difference.
pub const SKEWED: &str = "RequestTimeTooSkewed";

/// The lifetime of a signed request, in seconds.
const VALID: u64 = 300;

/// The maximum size of a list of versions or an object, in bytes.
const LONGEST: u64 = 4 << 20;

/// The maximum number of pages of versions of an object, because any writer can add some.
const MOST_PAGES: usize = 20;

/// The maximum number of pages of all objects of a key.
const MOST_PAGES_OF_ALL: usize = 1000;

/// A bucket with credentials.
pub(super) struct Bucket {
    at: rusty_s3::Bucket,
    credentials: Option<Credentials>,
    client: Client,
    clock: Clock,
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
}

impl Stored {
    /// Returns the reason why it could be deleted now, if it could.
    pub(super) fn is_loose(&self, now: Moment) -> Option<String> {
        match (self.mode.as_deref(), self.until) {
            (Some("COMPLIANCE"), Some(until)) if until > now => None,
            (Some("COMPLIANCE"), Some(until)) => Some(format!("its retention ended at {until}")),
            (Some(mode), _) => Some(format!("its retention mode is {}, which can be lifted", line(mode))),
            (None, _) => Some("it is under no retention".to_owned()),
        }
    }
}

impl Bucket {
    pub(super) fn new(
        name: &str,
        endpoint: Option<&str>,
        region: &str,
        credentials: Option<Credentials>,
        within: Duration,
        clock: Clock,
    ) -> Result<Self, Error> {
        // Amazon's buckets have hosts of their own; others are folders of the endpoint.
        let style = if endpoint.is_some() { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let amazon = format!("https://s3.{region}.amazonaws.com");
        let endpoint = endpoint.unwrap_or(&amazon).parse().map_err(|_| Error::Endpoint)?;
        let bucket = rusty_s3::Bucket::new(endpoint, style, name.to_owned(), region.to_owned());
        Ok(Self { at: bucket.map_err(|_| Error::Endpoint)?, credentials, client: Client::new(within), clock })
    }

    /// Sends a request about an object or the bucket; query and headers must be sorted by name.
    fn ask(
        &self,
        method: Method,
        object: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply, Error> {
        let mut url = self.at.object_url(object).map_err(|_| Error::Endpoint)?;
        match &self.credentials {
            Some(credentials) => {
                let now = jiff::Timestamp::from_millisecond(self.clock.now().millis()).map_err(|_| Error::Endpoint)?;
                url = rusty_s3::signing::sign(
                    &now,
                    method,
                    url,
                    credentials.key(),
                    credentials.secret(),
                    credentials.token(),
                    self.at.region(),
                    VALID,
                    query.iter().copied(),
                    headers.iter().copied(),
                );
            }
            None => drop(url.query_pairs_mut().extend_pairs(query)),
        }
        let method = if method == Method::Put { http::Method::PUT } else { http::Method::GET };
        Ok(self.client.ask(method, url.as_str(), headers, body, LONGEST)?)
    }

    fn get(&self, object: &str, query: &[(&str, &str)]) -> Result<Reply, Error> {
        let reply = self.ask(Method::Get, object, query, &[], &[])?;
        // Some servers send an error with status 200.
        let is_answer = reply.status == StatusCode::OK && (!object.is_empty() || xml::refusal(&reply.body).is_none());
        if is_answer { Ok(reply) } else { Err(self.refused(&reply)) }
    }

    /// Checks that the bucket can lock objects, if permitted to ask.
    pub(super) fn check_lock(&self) -> Result<(), Error> {
        let reply = match self.get("", &[("object-lock", "")]) {
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
        let listed: Listed = xml::read(&self.get("", &query)?.body)?;
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
        let reply = self.get(key, &[("versionId", version)])?;
        if reply.header("x-amz-version-id").is_some_and(|given| given != version) {
            return Err(Error::answer("it is another version than the one that was asked for"));
        }
        let mode = reply.header("x-amz-object-lock-mode").map(str::to_owned);
        let until = reply.header("x-amz-object-lock-retain-until-date").map(moment).transpose()?;
        Ok(Stored { mode, until, at, later, bytes: reply.body })
    }

    /// Stores an object that cannot be changed or deleted before a time.
    pub(super) fn put(&self, key: &str, bytes: &[u8], until: Moment) -> Result<(), Error> {
        let until = jiff::Timestamp::from_second(until.seconds()).map_err(|_| Error::TooFar)?.to_string();
        let checksum = Base64::encode_string(Digest::of(bytes).as_bytes());
        let headers = [
            ("content-type", "application/json"),
            ("x-amz-checksum-sha256", checksum.as_str()),
            ("x-amz-object-lock-mode", "COMPLIANCE"),
            ("x-amz-object-lock-retain-until-date", until.as_str()),
            ("x-amz-sdk-checksum-algorithm", "SHA256"),
        ];
        let reply = self.ask(Method::Put, key, &[], &headers, bytes)?;
        // Some servers answer with 201 or 204, and some send an error with status 200.
        let is_taken = reply.status.is_success() && xml::refusal(&reply.body).is_none();
        if is_taken { Ok(()) } else { Err(self.refused(&reply)) }
    }

    fn refused(&self, reply: &Reply) -> Error {
        let said = xml::refusal(&reply.body);
        let (code, mut message) =
            said.map_or(("nothing".into(), "no reason given".into()), |said| (said.code, said.message));
        if let Some(dated) = reply.header("date").filter(|_| code == SKEWED) {
            message = format!("{message} Its answer is dated {dated}, and it is {} here.", self.clock.now());
        }
        let short = |text: String| line(&text.chars().take(200).collect::<String>());
        Error::Refused { status: reply.status.as_u16(), code: short(code), message: short(message) }
    }
}

fn moment(text: &str) -> Result<Moment, Error> {
    let stamp: jiff::Timestamp =
        text.parse().map_err(|_| Error::answer(&format!("it has {text:?} in the place of a time")))?;
    Ok(Moment::from_millis(stamp.as_millisecond()))
}

/// The reason for a failed request.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("endpoint and bucket do not make the address of a bucket")]
    Endpoint,
    #[error("the bucket has no Object Lock, so its writers could change the objects")]
    NoLock,
    #[error("the answer is not one of S3's: {0}")]
    Answer(String),
    #[error("the date until which the object is to be retained is too far away")]
    TooFar,
    #[error("there are more than {most} versions of {0}", most = MOST_PAGES * 1000)]
    TooMany(&'static str),
    #[error("there are more than {} versions of objects of one key", MOST_PAGES_OF_ALL * 1000)]
    TooManyObjects,
    #[error("S3 answers {code} (status {status}): {message}")]
    Refused { status: u16, code: String, message: String },
    #[error("{0}")]
    Http(#[from] http::Error),
}

impl Error {
    /// Returns the error for an unexpected answer.
    pub(super) fn answer(why: &str) -> Self {
        Self::Answer(http::shown(why))
    }
}
