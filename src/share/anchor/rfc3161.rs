//! The anchor `rfc3161`: a time-stamping authority's signed word that a root, or an entry of a
//! thread, was there by some time. It makes no claim stronger; it says when, where everything else
//! in a run is dated by the machine that recorded it.
//!
//! A verifier that trusts the authority's CA can check a token by itself. The token is kept beside
//! the run or thread, and travels with it.

mod stamps;
mod token;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use base64ct::{Base64, Encoding as _};
use der::asn1::{Int, OctetString};
use der::oid::db::rfc5912::ID_SHA_256;
use der::{Decode as _, Encode as _};
use x509_cert::spki::AlgorithmIdentifier;
use x509_tsp::{MessageImprint, TimeStampReq, TimeStampResp, TspVersion};

use crate::model::any_error::AnyError;
use crate::model::digest::Digest;
use crate::model::entry::Subject;
use crate::model::format;
use crate::model::place::Place;
use crate::model::time::Moment;
use crate::repository::Repository;
use crate::verify::{Against, Answer, Guarantee, Question, ThreadAnswer, ThreadQuestion, ThreadStatement};

use super::kind::{AnchorAnswer, AnchorKind, Evidence, Holdings, Published, ThreadTip, Unsure};
use super::program::{self, Program};
use super::settings::{SettingError, Settings};
use super::{Error, Means, in_a_line};

pub use stamps::Error as StampsError;
use stamps::Stamps;
pub use token::Error as TokenError;

/// The maximum size of a token and of a response, in bytes.
const LONGEST: u64 = 256 << 10;

/// A time-stamping authority.
pub(super) struct Authority {
    url: String,
    /// The file of trusted CA certificates.
    ca: PathBuf,
}

impl Authority {
    /// Parses the settings.
    pub(super) fn read(settings: &mut Settings<'_>) -> Result<Self, SettingError> {
        if settings.stated.is_some() {
            return Err(settings.bad("guarantee", "says nothing: a time stamp changes no claim"));
        }
        let url = settings.required("url")?.to_owned();
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return Err(settings.bad("url", "is no URL of HTTP"));
        }
        Ok(Self { url, ca: settings.required("ca")?.into() })
    }

    /// Makes the path of the certificates absolute.
    pub(super) fn settle(repository: &Repository, settings: &mut BTreeMap<String, String>) -> Result<(), AnyError> {
        let Some(ca) = settings.get_mut("ca") else { return Ok(()) };
        let whole = repository.environment.directory.join(&*ca).canonicalize();
        let whole = whole.map_err(|source| Error::Unreadable { path: PathBuf::from(&*ca), source })?;
        *ca = whole.to_string_lossy().into_owned();
        Ok(())
    }
}

impl AnchorKind for Authority {
    fn kind(&self) -> &'static str {
        "rfc3161"
    }

    fn address(&self) -> String {
        crate::git::remote::without_password(&self.url)
    }

    /// A time stamp has no guarantee.
    fn claims(&self) -> Option<Guarantee> {
        None
    }

    fn ask(&self, _: &Means, _: Duration, question: &Question<'_>) -> Result<AnchorAnswer, AnyError> {
        Ok(Answer::Time(self.time(question).map_err(|error| in_a_line(&*error))).into())
    }

    /// The authority stores nothing: tokens are kept here.
    fn holdings(&self, _: &Means, _: Duration, _: &str) -> Result<Holdings, AnyError> {
        Ok(Holdings::default())
    }

    /// Reads the tokens beside a thread. Each is over the leaf hash of an entry; its name has the
    /// number of entries at that time.
    fn ask_thread(&self, _: &Means, _: Duration, question: &ThreadQuestion<'_>) -> Result<ThreadAnswer, AnyError> {
        let (roots, store) = (self.roots()?, question.store);
        let stamps = Stamps::list(store, &Place::of_thread(question.thread))?;
        let (mut statements, mut first_error) = (Vec::new(), None);
        for token in stamps.read(store) {
            let Some((entries, _)) = format::parse_thread_stamp(&token.name) else { continue };
            let checked = token::imprint(&token.bytes)
                .and_then(|last| token::check(&token.bytes, &last, &roots).map(|stamp| (last, stamp.at)));
            match checked {
                Ok((last, at)) => statements.push(ThreadStatement {
                    entries,
                    last,
                    since: Some(at),
                    at_most: Guarantee::Detect,
                    notes: Vec::new(),
                    against: if token.is_own { Against::Own } else { Against::None },
                }),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        let nothing = in_a_line(&*explain_nothing(stamps, first_error));
        Ok(ThreadAnswer { statements, complaints: Vec::new(), nothing: Some(nothing) })
    }

    /// Requests and verifies a test token.
    fn probe(&self, means: &Means, within: Duration) -> Result<(), AnyError> {
        let root = Digest::compute(crate::ledger::sign::nonce().as_bytes());
        self.request(means, &self.roots()?, root, within).map(drop)
    }

    /// Requests a token for each run and thread that has none of this authority, and keeps it.
    ///
    /// A thread must verify: its row `anchor` fails later if it has another entry than its token.
    fn publish(
        &self,
        means: &Means,
        within: Duration,
        evidence: &Evidence,
        unsure: Unsure<'_>,
    ) -> Result<Vec<Published>, AnyError> {
        let roots = self.roots()?;
        let mut published = Vec::new();
        let mut publish =
            |subject: Place, entries: Option<u64>, root: Digest, sound: &dyn Fn() -> Result<(), AnyError>| {
                let known = Stamps::list(&means.store, &subject)?;
                let mut status = "up-to-date";
                if !known.read(&means.store).any(|token| token::check(&token.bytes, &root, &roots).is_ok()) {
                    sound()?;
                    stamps::keep(&means.store, &subject, entries, &self.request(means, &roots, root, within)?)?;
                    status = "new";
                }
                published.push(Published { kind: "time stamp", name: subject.name, status });
                Ok::<_, AnyError>(())
            };
        for sealing in &evidence.sealings {
            publish(Place::of_run(&sealing.run), None, sealing.seal.root, &|| Ok(()))?;
        }
        for ThreadTip { thread, entries, last, .. } in &evidence.threads {
            publish(Place::of_thread(thread), Some(*entries), *last, &|| unsure(&Subject::Thread(thread.clone())))?;
        }
        Ok(published)
    }

    fn trust_file(&mut self) -> Option<&mut PathBuf> {
        Some(&mut self.ca)
    }
}

/// Returns the reason why tokens prove no time: unread ones, else the first wrong one, else none.
fn explain_nothing(stamps: Stamps, first_error: Option<token::Error>) -> AnyError {
    match (stamps.overfull.into_iter().next(), first_error) {
        (Some(place), _) => StampsError::Overfull(place).into(),
        (None, Some(error)) => error.into(),
        (None, None) => Error::NoToken.into(),
    }
}

impl Authority {
    fn roots(&self) -> Result<token::Roots, AnyError> {
        let text = std::fs::read(&self.ca).map_err(|error| Error::Ca(self.ca.clone(), error))?;
        Ok(token::Roots::read(&text)?)
    }

    /// Returns the earliest time proven by a local token.
    fn time(&self, question: &Question<'_>) -> Result<Moment, AnyError> {
        let roots = self.roots()?;
        let root = question.root.ok_or(Error::NoRoot)?;
        let store = question.store.ok_or(Error::NoToken)?;
        let stamps = Stamps::list(store, &Place::of_run(question.run))?;
        let mut first_error = None;
        let mut earliest: Option<Moment> = None;
        for token in stamps.read(store) {
            match token::check(&token.bytes, &root, &roots) {
                Ok(stamp) => earliest = Some(earliest.map_or(stamp.at, |at| at.min(stamp.at))),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        earliest.ok_or_else(|| explain_nothing(stamps, first_error))
    }

    /// Requests a token for a root and verifies it.
    fn request(
        &self,
        means: &Means,
        roots: &token::Roots,
        root: Digest,
        within: Duration,
    ) -> Result<Vec<u8>, AnyError> {
        let nonce = Digest::compute(crate::ledger::sign::nonce().as_bytes());
        // Positive, and without a leading zero.
        let mut number = nonce.as_bytes()[..8].to_vec();
        number[0] = number[0] & 0x3f | 0x40;
        let encoded = Int::new(&number).map_err(token::Error::Der)?;
        let request = TimeStampReq {
            version: TspVersion::V1,
            message_imprint: MessageImprint {
                hash_algorithm: AlgorithmIdentifier { oid: ID_SHA_256, parameters: None },
                hashed_message: OctetString::new(root.as_bytes().as_slice()).map_err(token::Error::Der)?,
            },
            req_policy: None,
            nonce: Some(encoded.clone()),
            cert_req: true,
            extensions: None,
        };
        let body = request.to_der().map_err(token::Error::Der)?;
        let fields = [("url", self.url.as_str()), ("body", &Base64::encode_string(&body))];
        let reply = Program::own(self.kind(), program::RFC3161).ask(means, within, LONGEST, &fields)?;
        if !reply.is_success() {
            return Err(Error::Status(reply.status, reply.excerpt()).into());
        }
        // A proxy may answer with a web page.
        let answer = TimeStampResp::from_der(&reply.body).map_err(|_| Error::NoStamp(reply.excerpt()))?;
        let status = answer.status.status as u32;
        // Granted, or granted with modifications.
        let token = answer.time_stamp_token.filter(|_| status <= 1).ok_or(Error::Refused(status))?;
        let bytes = token.to_der().map_err(token::Error::Der)?;
        let stamp = token::check(&bytes, &root, roots)?;
        if stamp.nonce != Some(encoded) {
            return Err(Error::Nonce.into());
        }
        Ok(bytes)
    }
}
