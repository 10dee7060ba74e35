//! `git handoff anchor add`

use std::collections::BTreeMap;
use std::path::PathBuf;

use git_handoff::anchor::operations::NewAnchor;
use git_handoff::model::hints;
use git_handoff::repository::Repository;

use super::super::{Ending, Failure, Output};

/// Configure an anchor, after a look at whether it is there
///
/// Writes `handoff.anchor.NAME.*` into this repository's configuration, and nothing to the anchor.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What it is to be called
    name: String,
    /// How strong it is, if you know better than its kind: detect, external, external-immutable
    #[arg(long, value_name = "GUARANTEE")]
    guarantee: Option<String>,
    /// How many seconds one question may take [default: 30]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Write it into your own configuration, for all repositories
    #[arg(long)]
    global: bool,
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    Git(Git),
    S3(S3),
    Rfc3161(Rfc3161),
}

/// Another repository, to which the logs are only fast-forwarded
#[derive(clap::Args)]
struct Git {
    /// The repository: a remote's name, a URL or a path
    url: String,
    /// Keep the logs in branches PREFIX/logs/KEY, which a host can protect
    #[arg(long, value_name = "PREFIX")]
    branches: Option<String>,
}

/// A bucket with S3 Object Lock, in which each sealed run gets a small object that nobody can change
#[derive(clap::Args)]
struct S3 {
    /// The bucket, made with Object Lock
    bucket: String,
    /// What the names of objects begin with [default: git-handoff/]
    #[arg(long)]
    prefix: Option<String>,
    /// The address of the service, if it is not Amazon's
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// The region [default: `$AWS_REGION`, else us-east-1]
    #[arg(long)]
    region: Option<String>,
    /// Take the credentials from this section of the credentials file
    #[arg(long)]
    profile: Option<String>,
    /// The credentials file [default: ~/.aws/credentials]
    #[arg(long, value_name = "FILE")]
    credentials: Option<String>,
    /// For how many days nobody can take an object away [default: 3650]
    #[arg(long, value_name = "DAYS")]
    retention_days: Option<u64>,
}

/// A time-stamping authority, which says when a root was there
#[derive(clap::Args)]
struct Rfc3161 {
    /// Where it is asked
    url: String,
    /// The CA certificates that you trust about it, in PEM; a file outside the work tree
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
}

impl Arguments {
    /// Returns what was given, by the names of the settings.
    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        let mut set = |key: &str, value: Option<String>| settings.extend(value.map(|value| (key.to_owned(), value)));
        set("guarantee", self.guarantee.clone());
        set("timeout", self.timeout.map(|seconds| seconds.to_string()));
        match &self.kind {
            Kind::Git(git) => {
                set("type", Some("git".into()));
                set("url", Some(git.url.clone()));
                set("branches", git.branches.clone());
            }
            Kind::S3(s3) => {
                set("type", Some("s3".into()));
                set("bucket", Some(s3.bucket.clone()));
                set("prefix", s3.prefix.clone());
                set("endpoint", s3.endpoint.clone());
                set("region", s3.region.clone());
                set("profile", s3.profile.clone());
                set("credentials", s3.credentials.clone());
                set("retentionDays", s3.retention_days.map(|days| days.to_string()));
            }
            Kind::Rfc3161(authority) => {
                set("type", Some("rfc3161".into()));
                set("url", Some(authority.url.clone()));
                set("ca", Some(authority.ca.to_string_lossy().into_owned()));
            }
        }
        settings
    }
}

/// Looks at the anchor and writes it down.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let name = arguments.name.as_str();
    let new = NewAnchor { name, settings: arguments.settings(), global: arguments.global };
    let anchor = repository.add_anchor(new)?;
    if output.json {
        output.value(&anchor);
    } else {
        output.line(&format!("{name}: {} ({}) at {}", anchor.kind, anchor.guarantee, anchor.place));
        output.hint(&hints::push_anchor(name));
    }
    Ok(Ending::Done)
}
