//! Threads in a bucket: one object for each length at which a thread was pushed. No object is
//! overwritten.

use serde::{Deserialize, Serialize};

use crate::model::any_error::AnyError;
use crate::model::digest::Digest;
use crate::model::entry::Subject;
use crate::model::name::ThreadId;
use crate::model::time::Moment;
use crate::verify::{Against, Guarantee, ThreadAnswer, ThreadQuestion, ThreadStatement};

use super::wire::{Bucket, Stored};
use super::{S3Place, parse_object, plural};
use crate::share::anchor::kind::{Published, ThreadTip, Unsure};
use crate::share::anchor::{Error, Means};

/// The schema of an object.
const SCHEMA: &str = "git-handoff.anchored-thread/1";

/// The fields of an object, in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Object {
    #[cfg_attr(feature = "schemas", schemars(extend("const" = "git-handoff.anchored-thread/1")))]
    schema: String,
    /// The thread.
    thread: ThreadId,
    /// The number of its entries.
    entries: u64,
    /// The leaf hash of the last of them.
    last: Digest,
    /// The key that the thread belongs to.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    fingerprint: String,
}

impl S3Place {
    /// Returns the statements of a thread's objects.
    pub(super) fn thread_word(
        &self,
        bucket: &Bucket<'_>,
        now: Moment,
        question: &ThreadQuestion<'_>,
    ) -> Result<ThreadAnswer, AnyError> {
        let found = self.find_thread(bucket, question.owner, question.thread, &|_| true)?;
        let statements = found.into_iter().map(|(object, stored)| {
            let loose = stored.is_loose(now);
            let at_most = if loose.is_some() { Guarantee::External } else { Guarantee::ExternalImmutable };
            let later =
                (stored.later > 0).then(|| format!("{} put over it later, which do not count", plural(stored.later)));
            ThreadStatement {
                entries: object.entries,
                last: object.last,
                since: Some(stored.at),
                at_most,
                notes: loose.into_iter().chain(later).collect(),
                against: Against::All,
            }
        });
        Ok(ThreadAnswer { statements: statements.collect(), ..ThreadAnswer::default() })
    }

    /// Puts an object for the present length of a thread, unless the bucket has one, or a longer
    /// one.
    ///
    /// First compares all objects with the thread, and verifies the thread: an object cannot be
    /// removed.
    pub(super) fn publish_thread(
        &self,
        bucket: &Bucket<'_>,
        means: &Means,
        tip: &ThreadTip,
        unsure: Unsure<'_>,
    ) -> Result<Published, AnyError> {
        let ThreadTip { thread, entries, last, fingerprint, leaves } = tip;
        let exactly = |number: u64| number == *entries;
        if let Some((existing, _)) = first_object(self.find_thread(bucket, fingerprint, thread, &exactly)?) {
            return if existing.last == *last {
                Ok(with_status("up-to-date", thread))
            } else {
                Err(differs(*entries, thread).into())
            };
        }
        for (existing, _) in self.find_thread(bucket, fingerprint, thread, &|_| true)? {
            let at = usize::try_from(existing.entries - 1).unwrap_or(usize::MAX);
            match leaves.get(at) {
                Some(leaf) if *leaf == existing.last => {}
                Some(_) => return Err(differs(existing.entries, thread).into()),
                None if existing.entries > *entries => return Ok(with_status("behind", thread)),
                // The chain is unreadable up to there, which the check below reports.
                None => {}
            }
        }
        let subject = Subject::Thread(thread.clone());
        unsure(&subject)?;
        let object = Object {
            schema: SCHEMA.to_owned(),
            thread: thread.clone(),
            entries: *entries,
            last: *last,
            fingerprint: fingerprint.clone(),
        };
        self.put(bucket, means, &self.thread_key(fingerprint, thread, *entries), &object)?;
        // Another process may have been faster, and only the earliest version counts.
        let found = first_object(self.find_thread(bucket, fingerprint, thread, &exactly)?);
        let (existing, stored) = found.ok_or_else(|| Error::NotKept(subject.clone()))?;
        if existing != object {
            return Err(differs(*entries, thread).into());
        }
        match stored.is_loose(means.clock.now()) {
            Some(why) => Err(Error::NotLocked(subject, why).into()),
            None => Ok(with_status("new", thread)),
        }
    }

    /// Reads the objects of a thread with these numbers of entries, the smallest number first.
    fn find_thread(
        &self,
        bucket: &Bucket<'_>,
        fingerprint: &str,
        thread: &ThreadId,
        is_wanted: &dyn Fn(u64) -> bool,
    ) -> Result<Vec<(Object, Stored)>, AnyError> {
        let folder = self.folder(fingerprint);
        let entries = |key: &str| parse(&folder, key).filter(|(name, _)| name == thread).map(|(_, entries)| entries);
        let is_one = |key: &str| entries(key).is_some_and(is_wanted);
        let mut found = Vec::new();
        for (key, stored) in bucket.earliest_below(&self.thread_folder(fingerprint, thread), &is_one)? {
            let object = parse_object(&stored.bytes).filter(|object: &Object| object.schema == SCHEMA);
            let object = object.ok_or(Error::NotOurs("thread"))?;
            let expected = entries(&key).unwrap_or_default();
            if object.thread != *thread || object.entries != expected || object.fingerprint != fingerprint {
                let Object { thread: stored_thread, entries: stored_entries, fingerprint: stored_key, .. } = object;
                return Err(Error::ThreadElsewhere {
                    expected,
                    thread: stored_thread,
                    entries: stored_entries,
                    fingerprint: stored_key,
                }
                .into());
            }
            found.push((object, stored));
        }
        found.sort_by_key(|(object, _)| object.entries);
        Ok(found)
    }

    /// Returns the prefix of the keys of all objects of a writer about a thread.
    fn thread_folder(&self, fingerprint: &str, thread: &ThreadId) -> String {
        format!("{}threads/{}/", self.folder(fingerprint), thread.encoded().replace('%', "!"))
    }

    fn thread_key(&self, fingerprint: &str, thread: &ThreadId, entries: u64) -> String {
        format!("{}{entries}.json", self.thread_folder(fingerprint, thread))
    }
}

fn differs(entries: u64, thread: &ThreadId) -> Error {
    Error::DiffersOnThread { thread: thread.clone(), entries }
}

fn with_status(status: &'static str, thread: &ThreadId) -> Published {
    Published { kind: "thread", name: thread.to_string(), status }
}

fn first_object(found: Vec<(Object, Stored)>) -> Option<(Object, Stored)> {
    found.into_iter().next()
}

/// Reads the key of an object about a thread in a writer's folder: the thread and the number of
/// entries.
pub(super) fn parse(folder: &str, key: &str) -> Option<(ThreadId, u64)> {
    let (segment, number) = key.strip_prefix(folder)?.strip_prefix("threads/")?.split_once('/')?;
    let number = number.strip_suffix(".json")?;
    let entries: u64 = number.parse().ok()?;
    let thread = ThreadId::decode(&segment.replace('!', "%"))?;
    (entries > 0 && entries.to_string() == number).then_some((thread, entries))
}
