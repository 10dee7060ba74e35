//! JSON output of `push` and `fetch`.

use serde::Serialize;

use crate::git::remote;
use crate::model::name::RunId;
use crate::run::operate::statements::StatementOutcome;

use super::fetch::Fetched;
use super::push::{Pushed, Request};

/// The output of `fetch --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.fetch/1")]
pub struct FetchAnswer<'a> {
    /// The remote's name.
    pub remote: &'a str,
    /// The result.
    #[serde(flatten)]
    pub fetched: &'a Fetched,
    /// Shared runs that have the remote's entries here now; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub followed: &'a [RunId],
    /// Statements of others about our runs, and their effect; absent if there are none.
    #[serde(rename = "takenIn", skip_serializing_if = "<[_]>::is_empty")]
    pub taken_in: &'a [StatementOutcome],
    /// The number of further refs, which a tool leaves out above a limit; absent if all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
}

/// The output of `push --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.push/1", rename_all = "camelCase")]
pub struct PushAnswer<'a> {
    /// The remote as given, without a password.
    remote: String,
    /// Whether nothing was to be moved.
    dry_run: bool,
    /// The result.
    #[serde(flatten)]
    pushed: &'a Pushed,
    /// The number of further refs, which a tool leaves out above a limit; absent if all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<u64>,
}

impl<'a> PushAnswer<'a> {
    /// Returns the answer for a push.
    pub fn new(request: &Request, pushed: &'a Pushed) -> Self {
        let remote = remote::without_password(&request.remote.given);
        Self { remote, dry_run: request.dry_run, pushed, more: None }
    }
}
