//! A run on the remote that it was pushed to or is shared through, compared with the run here.

use serde::Serialize;

use crate::model::digest::Oid;
use crate::model::driver::DriverId;
use crate::model::name::RunId;
use crate::model::time::Moment;

/// The remote of a run, and what reading it showed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RemoteRead {
    /// The remote, without a password.
    pub remote: String,
    /// The time of the last read, by the local clock; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Moment>,
    /// The reason why it could not be read now; absent if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The remote, as it was named.
    #[serde(skip)]
    pub name: String,
    /// The run on the remote, compared with the run here.
    #[serde(skip)]
    pub state: RemoteState,
}

/// The run on a remote, compared with the run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteState {
    /// The run here has all of its entries.
    Current(Current),
    /// The remote has no such run.
    Missing,
    /// The remote could not be read, or its entries cannot follow ours.
    Unread,
    /// The run here and the run there have the same beginning, and other entries follow.
    Twice {
        /// The head here.
        ours: Oid,
        /// The head on the remote.
        theirs: Oid,
    },
    /// The remote has another run of this id.
    Other {
        /// The head here.
        ours: Oid,
        /// The head on the remote.
        theirs: Oid,
    },
}

/// A run on a remote whose entries are all here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Current {
    /// The number of entries that this repository lacked before.
    pub gained: usize,
    /// The number of entries here that the remote lacks.
    pub unpushed: usize,
    /// The drivers of other repositories that have beats there.
    pub drivers: Vec<DriverId>,
}

impl Current {
    /// Returns true if another repository drives the run, or has recorded something on it.
    fn shows_others(&self) -> bool {
        self.gained > 0 || !self.drivers.is_empty()
    }
}

impl RemoteState {
    /// Returns the weight of a finding: the heaviest of several remotes counts.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Missing => 0,
            Self::Current(current) if !current.shows_others() => 1,
            Self::Unread => 2,
            Self::Current(_) => 3,
            Self::Other { .. } => 4,
            Self::Twice { .. } => 5,
        }
    }

    /// Returns true if this repository lacked entries before.
    pub fn has_gained(&self) -> bool {
        matches!(self, Self::Current(current) if current.gained > 0)
    }

    /// Returns true if another repository drives the run, or has recorded something on it.
    pub fn shows_others(&self) -> bool {
        matches!(self, Self::Current(current) if current.shows_others())
    }
}

impl RemoteRead {
    /// Returns the time as of which the run here is known, if that is not now.
    pub fn stale_since(&self) -> Option<Moment> {
        self.read_at.filter(|_| self.failure.is_some())
    }

    /// Formats what the remote showed, or since when it was not read.
    pub fn in_words(&self, run: &RunId) -> String {
        let (run, remote) = (run.as_str(), &self.remote);
        match &self.state {
            RemoteState::Current(Current { gained: 1.., .. }) => format!("{run}: read new entries from {remote}"),
            RemoteState::Current(Current { unpushed: 0, .. }) => format!("{run}: the same as on {remote}"),
            RemoteState::Current(_) => format!("{run}: {remote} has only earlier entries"),
            RemoteState::Missing => format!("{run}: {remote} does not have it any more"),
            RemoteState::Unread => {
                let why = self.failure.as_deref().unwrap_or("unknown");
                format!("cannot read {run:?} from {remote}: {why}")
            }
            RemoteState::Twice { ours, theirs } => driven_twice(run, remote, *ours, *theirs),
            RemoteState::Other { .. } => format!("{remote} has another run {run:?}, which begins with another entry"),
        }
    }
}

/// Says that a run has one beginning and two continuations.
pub fn driven_twice(run: &str, remote: &str, ours: Oid, theirs: Oid) -> String {
    format!("{run:?} was driven twice: {remote} has other entries of it, at {theirs}, than there are here, at {ours}")
}
