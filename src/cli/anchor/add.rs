//! `git handoff anchor add`

use std::collections::BTreeMap;
use std::path::PathBuf;

use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::share::anchor::operations::NewAnchor;

use super::super::{Ending, Failure, Output};

/// Configure an anchor, after checking that it is reachable
///
/// Writes `handoff.anchor.NAME.*` into this repository's configuration, and nothing to the anchor.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The name of the anchor
    name: String,
    /// Set the strength of its evidence: detect, external, external-immutable [default: by kind]
    #[arg(long, value_name = "GUARANTEE")]
    guarantee: Option<String>,
    /// Limit the time of one request, in seconds [default: 30]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Write to your user configuration, for all repositories
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
    Program(Program),
}

/// Another repository; logs are only fast-forwarded there
#[derive(clap::Args)]
struct Git {
    /// The repository: a remote's name, a URL or a path
    url: String,
    /// Store the logs in branches PREFIX/logs/KEY, which a host can protect
    #[arg(long, value_name = "PREFIX")]
    branches: Option<String>,
}

/// An S3 bucket with Object Lock; each sealed run gets a small immutable object
#[derive(clap::Args)]
struct S3 {
    /// The bucket, created with Object Lock
    bucket: String,
    /// The prefix of object names [default: git-handoff/]
    #[arg(long)]
    prefix: Option<String>,
    /// The address of the service, if not Amazon's
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// The region [default: `$AWS_REGION`, else us-east-1]
    #[arg(long)]
    region: Option<String>,
    /// Use this section of the credentials file
    #[arg(long)]
    profile: Option<String>,
    /// The credentials file [default: ~/.aws/credentials]
    #[arg(long, value_name = "FILE")]
    credentials: Option<String>,
    /// Lock objects for this many days [default: 3650]
    #[arg(long, value_name = "DAYS")]
    retention_days: Option<u64>,
}

/// A time-stamping authority, which proves when a root existed
#[derive(clap::Args)]
struct Rfc3161 {
    /// The URL
    url: String,
    /// A PEM file of trusted CA certificates, outside the work tree
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
}

/// A place of another kind, which a program of yours reaches
#[derive(clap::Args)]
struct Program {
    /// The kind; the program is git-handoff-anchor-KIND
    kind: String,
    /// The address, for the program
    url: String,
    /// The prefix of object names [default: git-handoff/]
    #[arg(long)]
    prefix: Option<String>,
    /// Keep objects for this many days [default: 3650]
    #[arg(long, value_name = "DAYS")]
    retention_days: Option<u64>,
}

impl Arguments {
    /// Returns the given values by setting.
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
            Kind::Program(program) => {
                set("type", Some(program.kind.clone()));
                set("url", Some(program.url.clone()));
                set("prefix", program.prefix.clone());
                set("retentionDays", program.retention_days.map(|days| days.to_string()));
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

/// Checks the anchor and writes the configuration.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let name = arguments.name.as_str();
    let new = NewAnchor { name, settings: arguments.settings(), global: arguments.global };
    let anchor = repository.add_anchor(new)?;
    if !output.answers(&anchor) {
        output.line(&format!("{name}: {} ({}) at {}", anchor.kind, anchor.guarantee, anchor.place));
        output.hint(&hints::push_anchor(name));
    }
    Ok(Ending::Done)
}
