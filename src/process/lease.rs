//! The sign of life of a driver, without which an attempt ends.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A sign of life: a file with the time since boot at which the driver last reached its remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// The file.
    pub file: PathBuf,
    /// The longest time without another sign.
    pub limit: Duration,
}
