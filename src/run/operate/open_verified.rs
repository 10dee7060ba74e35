//! Opens runs only if they verify, and remembers how far they did, so that the next writer verifies
//! only newer entries.
//!
//! `verify` and code that takes bytes out of a run ignore the [mark](marks).

use std::fs;

use crate::git::private_files::{self, VERIFIED};
use crate::ledger::chain::{Head, Writer};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::role::{Refused, Role};
use crate::model::time::Moment;
use crate::repository::{Repository, Trust, marks};
use crate::run::query::driver_lock::NoDriver;
use crate::run::query::remote_read::driven_twice;
use crate::run::query::sharing::Sharing;
use crate::verify::{Appender, Begun, Continuable, Mark, Refusal, Verified, continuable_on};

use super::open::Loaded;
use super::{Error, OpenRun, now, sharing};

impl OpenRun {
    /// Opens a run of this repository for recording, if it verifies and our key can append to it.
    ///
    /// This and [`OpenRun::from_verified`] are the only ways to open a run. A sealed run is opened
    /// too, so that its log entry can be added after a crash; nothing else can be recorded.
    pub fn open(writer: &Writer, run: &RunId) -> Result<Self, Denied> {
        Self::open_begun(writer, run, Begun::ByKnown(None))
    }

    /// Opens a run like [`OpenRun::open`], with other rules for who can have begun it.
    pub fn open_begun(writer: &Writer, run: &RunId, begun: Begun<'_>) -> Result<Self, Denied> {
        let key = writer.signer.fingerprint();
        let mark = marks::read(&writer.store, VERIFIED, &run.encoded());
        let appender = Appender { key: &key, begun, mark: mark.as_ref(), now: Some(now(writer)) };
        match continuable_on(&writer.store, run, &format::run_ref(run), appender) {
            Ok(proven) => {
                let now = Mark { commit: proven.commit, key };
                if mark.as_ref() != Some(&now) {
                    // If this fails, the next writer verifies everything again.
                    let _ = marks::keep(&writer.store, VERIFIED, &run.encoded(), now);
                }
                Ok(Self::from_verified(writer, proven)?)
            }
            Err(refusal) => {
                let opened = Self::unverified(writer.clone(), run)?;
                match refusal {
                    Refusal::Sealed(_) => {
                        let _ = fs::remove_file(private_files::path(&writer.store, VERIFIED, &run.encoded()));
                        Ok(opened)
                    }
                    refusal => Err(refusal.into()),
                }
            }
        }
    }

    /// Opens a verified run, without leaving a mark.
    pub fn from_verified(writer: &Writer, proven: Verified<Continuable>) -> Result<Self, Error> {
        let proven = proven.into_inner();
        let entries = proven.entries();
        let head = Head {
            name: proven.reference,
            commit: Some(proven.commit),
            tree: Some(proven.tree),
            last: Some(proven.last),
            at: Some(proven.at),
            entries,
        };
        let (run, first, frontier, state) = (proven.run, proven.first, proven.frontier, proven.state);
        Ok(Self::new(writer.clone(), Loaded { run, first, head, frontier, state }))
    }
}

impl Repository {
    /// Opens a run for recording, if our key began it, or a known signer whose key is not revoked.
    ///
    /// A run that was pushed or is shared is read from its remote first, and recorded through it.
    pub fn opened(&self, run: &RunId) -> Result<OpenRun, Denied> {
        self.opened_after_read(run, &|| self.opened_here(run))
    }

    /// Opens a run for statements that were fetched. Only a shared run is recorded through its
    /// remote.
    pub(super) fn opened_after_fetch(&self, run: &RunId) -> Result<OpenRun, Denied> {
        self.follow_sharing(self.opened_here(run)?, None)
    }

    /// Opens a run like [`Repository::opened`], by the entries that are here. A shared run is not
    /// followed to its remote.
    pub fn opened_here(&self, run: &RunId) -> Result<OpenRun, Denied> {
        let trust = self.options(&Trust::default(), &mut |_| ()).ok();
        OpenRun::open_begun(&self.writer()?, run, Begun::ByKnown(trust.as_ref()))
    }

    /// Opens a run for recording, no matter which key began it. Nothing of it may be executed.
    pub fn opened_by_anyone(&self, run: &RunId) -> Result<OpenRun, Denied> {
        self.opened_after_read(run, &|| OpenRun::open_begun(&self.writer()?, run, Begun::ByAnyone))
    }

    /// Opens a run after reading the remote that it was pushed to. A shared run is only opened,
    /// because following its remote reads and judges that.
    ///
    /// A driver here records in this repository and a command through the remote, so neither may
    /// begin while the other is at it: the run would go on twice.
    fn opened_after_read(&self, run: &RunId, open: &dyn Fn() -> Result<OpenRun, Denied>) -> Result<OpenRun, Denied> {
        let here = open()?;
        if here.state.shared.is_some() {
            return self.follow_sharing(here, None);
        }
        let no_driver = if here.state.sealed || Sharing::read(&self.store, run).is_none() {
            None
        } else {
            NoDriver::keep(&self.store.common_dir(), run).map_err(|error| Denied::Lock(run.clone(), error))?
        };
        let read = self.read_to_change(run)?;
        let is_behind = read.as_ref().is_some_and(|read| read.state.has_gained());
        let mut open = self.follow_sharing(if is_behind { open()? } else { here }, read)?;
        open.keep_drivers_out(no_driver);
        Ok(open)
    }
}

impl Denied {
    /// Names the roles that would do, if the key has none at all in the run.
    pub(crate) fn lacking(self, roles: &'static [Role]) -> Self {
        match self {
            Self::Refused(Refusal::NotAWriter { run, key }) => {
                Self::Run(Error::Role { run, key, why: Refused::Role(roles) })
            }
            other => other,
        }
    }
}

errors! {
    /// Failures to open a run.
    #[derive(Debug, thiserror::Error)] pub enum Denied;
    Shared(RunId) "shared": "the run {:?} is shared, and nothing here says through which remote" [.0.as_str()];
    Offline { run: RunId, remote: String } "shared":
        "the run {:?} is shared through {remote}, which --offline does not read" [run.as_str()];
    Unread { run: RunId, remote: String, why: String, as_of: Option<Moment> } "remote":
        "cannot read the run {:?} from {remote}: {why}; what is here is {}" [run.as_str(), age_in_words(*as_of)];
    Twice { run: RunId, remote: String, ours: Oid, theirs: Oid } "driven-twice" 3:
        "the run {}" [driven_twice(run.as_str(), remote, *ours, *theirs)];
    Lock(RunId, #[source] std::io::Error) "io": "cannot keep drivers out of the run {:?}" [.0.as_str()];
    #[from] Run(Error), Refused(Refusal), Repository(AnyError), Remote(Box<sharing::Error>);
}

/// Formats when the entries that are here were last compared with those of a remote.
fn age_in_words(as_of: Option<Moment>) -> String {
    as_of.map_or_else(|| "of unknown age".to_owned(), |at| format!("as of {at}"))
}
