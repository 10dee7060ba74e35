//! `git handoff anchor add`

use std::collections::BTreeMap;

use git_handoff::anchor;
use git_handoff::git::remote::{self, Remotes};
use serde_json::json;

use super::super::context::Context;
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

impl Arguments {
    fn settings(&self, context: &Context) -> Result<BTreeMap<String, String>, Failure> {
        let mut settings = BTreeMap::new();
        let mut set = |key: &str, value: Option<String>| settings.extend(value.map(|value| (key.to_owned(), value)));
        set("guarantee", self.guarantee.clone());
        set("timeout", self.timeout.map(|seconds| seconds.to_string()));
        match &self.kind {
            Kind::Git(git) => {
                set("type", Some("git".into()));
                // The place, not the name of a remote, which may come to mean another place.
                let remote = Remotes::read(&context.store)?.find(&git.url)?;
                set("url", Some(remote::push_destination(&context.store, &remote)?));
                set("branches", git.branches.clone());
            }
        }
        Ok(settings)
    }
}

/// Looks at the anchor and writes it down.
pub(crate) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let name = &arguments.name;
    if context.config.anchors.contains_key(name) {
        let failure = Failure::refused("anchor-exists", format!("the anchor {name:?} is configured already"));
        return Err(failure.hint(format!("git config --remove-section handoff.anchor.{name}")));
    }
    let settings = arguments.settings(context)?;
    let lower = settings.iter().map(|(key, value)| (key.to_ascii_lowercase(), value.clone())).collect();
    let anchor = anchor::read(name, &lower)?;
    anchor.probe(&context.means(output))?;
    write(name, &settings, arguments.global, context)?;
    if output.json {
        output.value(&json!({
            "schema": "git-handoff.anchor/1",
            "name": name,
            "type": anchor.kind(),
            "guarantee": anchor.guarantee().as_str(),
            "place": anchor.place(),
        }));
    } else {
        output.line(&format!("{name}: {} ({}) at {}", anchor.kind(), anchor.guarantee().as_str(), anchor.place()));
        output.hint(&format!("git handoff anchor push {name}"));
    }
    Ok(Ending::Done)
}

/// Writes all settings or none.
fn write(name: &str, settings: &BTreeMap<String, String>, global: bool, context: &Context) -> Result<(), Failure> {
    let scope = if global { "--global" } else { "--local" };
    let git = || context.store.git().args(["config", scope]);
    for (key, value) in settings {
        if let Err(error) = git().args([&format!("handoff.anchor.{name}.{key}"), value]).run() {
            // Half an anchor would be an error in every verify. Where nothing was written there is nothing to take back.
            let _ = git().args(["--remove-section", &format!("handoff.anchor.{name}")]).run();
            return Err(error.into());
        }
    }
    Ok(())
}
