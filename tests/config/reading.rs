//! Every setting, written by git and read from it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use git_handoff::engine::command;
use git_handoff::git::store::Durability;
use git_handoff::model::confinement::{Asked, Home, Network};
use git_handoff::model::protect_rule::ProtectRule;
use git_handoff::model::protected::{OnProtectedChange, VerifyIn};
use git_handoff::repository::config::{Config, Executor, OnVerifyFail, Outside, Queue, SETTINGS};
use git_handoff::share::anchor;

use super::{full_name, names, read};
use crate::common::clone::TestClone;

/// The name that is chosen where there is a choice: with capital letters, points and a blank in it.
const OWN: &str = "My own.v2";

/// The name of a setting, a value for it, and whether that holds.
type Sample = (&'static str, &'static str, fn(&Config) -> bool);

fn is_pathspec(rules: &[ProtectRule], pathspec: &str) -> bool {
    rules == [ProtectRule::Pathspec(pathspec.to_owned())]
}

fn is_exception(rules: &[ProtectRule], pathspec: &str) -> bool {
    rules == [ProtectRule::Except { except: BTreeSet::from([pathspec.to_owned()]) }]
}

/// One for every setting.
const SAMPLES: &[Sample] = &[
    ("handoff.signingKey", "~/key", |c| c.signing_key.as_deref() == Some("~/key")),
    ("handoff.signers", "who", |c| c.signers.as_deref() == Some(Path::new("who"))),
    ("handoff.secrets.allow", "jwt:a/*", |c| c.secrets_allowed == ["jwt:a/*".parse().unwrap()]),
    ("handoff.mcp.drive", "true", |c| c.mcp_drive),
    ("handoff.mcp.remotes", "origin", |c| c.mcp_remotes == ["origin"]),
    ("handoff.mcp.executors", "make", |c| c.mcp_executors == ["make"]),
    ("handoff.revoked", "gone", |c| c.revoked.as_deref() == Some(Path::new("gone"))),
    ("handoff.executor.<name>.command", "do it", |c| executor(c).command.as_deref() == Some("do it")),
    ("handoff.executor.<name>.setup", "lay out", |c| executor(c).setup.as_deref() == Some("lay out")),
    ("handoff.executor.<name>.verify", "look", |c| executor(c).verify.as_deref() == Some("look")),
    ("handoff.protect", "tests", |c| is_pathspec(&c.protect, "tests")),
    ("handoff.protectExcept", "src", |c| is_exception(&c.protect, "src")),
    ("handoff.onProtectedChange", "fail", |c| c.on_protected_change == Some(OnProtectedChange::Fail)),
    ("handoff.executor.<name>.protect", ":(glob)*.rs", |c| is_pathspec(&executor(c).protect, ":(glob)*.rs")),
    ("handoff.executor.<name>.protectExcept", "src", |c| is_exception(&executor(c).protect, "src")),
    ("handoff.executor.<name>.onProtectedChange", "allow", |c| {
        executor(c).on_protected_change == Some(OnProtectedChange::Allow)
    }),
    ("handoff.subagent.<name>.protect", "tests", |c| is_pathspec(&subagent(c).protect, "tests")),
    ("handoff.subagent.<name>.protectExcept", "src", |c| is_exception(&subagent(c).protect, "src")),
    ("handoff.subagent.<name>.onProtectedChange", "red", |c| {
        subagent(c).on_protected_change == Some(OnProtectedChange::Red)
    }),
    ("handoff.executor.<name>.heldOut", "/hidden", |c| executor(c).held_out == Some("/hidden".into())),
    ("handoff.executor.<name>.heldOutFeedback", "true", |c| executor(c).held_out_feedback == Some(true)),
    ("handoff.executor.<name>.redFirst", "true", |c| executor(c).red_first == Some(true)),
    ("handoff.executor.<name>.verifyIn", "fresh", |c| executor(c).verify_in == Some(VerifyIn::Fresh)),
    ("handoff.subagent.<name>.heldOut", "/hidden", |c| subagent(c).held_out == Some("/hidden".into())),
    ("handoff.subagent.<name>.heldOutFeedback", "no", |c| subagent(c).held_out_feedback == Some(false)),
    ("handoff.subagent.<name>.redFirst", "true", |c| subagent(c).red_first == Some(true)),
    ("handoff.subagent.<name>.verifyIn", "worktree", |c| subagent(c).verify_in == Some(VerifyIn::Worktree)),
    ("handoff.executor.<name>.versionCommand", "x -V", |c| executor(c).version_command.as_deref() == Some("x -V")),
    ("handoff.subagent.<name>.versionCommand", "x -V", |c| subagent(c).version_command.as_deref() == Some("x -V")),
    ("handoff.recordProgram", "false", |c| !c.record_program),
    ("handoff.executor.<name>.onVerifyFail", "keep", |c| executor(c).on_verify_fail == Some(OnVerifyFail::Keep)),
    ("handoff.executor.<name>.timeout", "2k", |c| executor(c).timeout == Some(2048)),
    ("handoff.executor.<name>.maxAttempts", "100", |c| executor(c).max_attempts == Some(100)),
    ("handoff.executor.<name>.env", "A=b=c", |c| executor(c).env["A"] == "b=c"),
    ("handoff.executor.<name>.passEnv", "A  B", |c| executor(c).pass_env == ["A", "B"]),
    ("handoff.executor.<name>.secretEnv", "A B", |c| secrets(executor(c)) == ["A", "B"]),
    ("handoff.maxMemory", "2g", |c| c.limits.memory == Some(2 << 30)),
    ("handoff.executor.<name>.maxMemory", "2g", |c| executor(c).limits.memory == Some(2 << 30)),
    ("handoff.subagent.<name>.maxMemory", "2g", |c| subagent(c).limits.memory == Some(2 << 30)),
    ("handoff.maxProcesses", "7", |c| c.limits.processes == Some(7)),
    ("handoff.executor.<name>.maxProcesses", "7", |c| executor(c).limits.processes == Some(7)),
    ("handoff.subagent.<name>.maxProcesses", "7", |c| subagent(c).limits.processes == Some(7)),
    ("handoff.maxCpuTime", "7", |c| c.limits.cpu_time == Some(7)),
    ("handoff.executor.<name>.maxCpuTime", "7", |c| executor(c).limits.cpu_time == Some(7)),
    ("handoff.subagent.<name>.maxCpuTime", "7", |c| subagent(c).limits.cpu_time == Some(7)),
    ("handoff.maxOpenFiles", "7", |c| c.limits.open_files == Some(7)),
    ("handoff.executor.<name>.maxOpenFiles", "7", |c| executor(c).limits.open_files == Some(7)),
    ("handoff.subagent.<name>.maxOpenFiles", "7", |c| subagent(c).limits.open_files == Some(7)),
    ("handoff.maxFileSize", "2m", |c| c.limits.file_size == Some(2 << 20)),
    ("handoff.executor.<name>.maxFileSize", "2m", |c| executor(c).limits.file_size == Some(2 << 20)),
    ("handoff.subagent.<name>.maxFileSize", "2m", |c| subagent(c).limits.file_size == Some(2 << 20)),
    ("handoff.maxDisk", "2m", |c| c.limits.disk == Some(2 << 20)),
    ("handoff.executor.<name>.maxDisk", "2m", |c| executor(c).limits.disk == Some(2 << 20)),
    ("handoff.subagent.<name>.maxDisk", "2m", |c| subagent(c).limits.disk == Some(2 << 20)),
    ("handoff.maxOutput", "2m", |c| c.limits.output == Some(2 << 20)),
    ("handoff.executor.<name>.maxOutput", "2m", |c| executor(c).limits.output == Some(2 << 20)),
    ("handoff.subagent.<name>.maxOutput", "2m", |c| subagent(c).limits.output == Some(2 << 20)),
    ("handoff.sandbox", "none", |c| c.sandbox == Asked::None),
    ("handoff.network", "loopback", |c| c.network == Network::Loopback),
    ("handoff.executor.<name>.sandbox", "none", |c| executor(c).sandbox == Some(Asked::None)),
    ("handoff.executor.<name>.network", "any", |c| executor(c).network == Some(Network::Any)),
    ("handoff.executor.<name>.home", "real", |c| executor(c).home == Some(Home::Real)),
    ("handoff.executor.<name>.readable", "~/a b", |c| executor(c).readable == [Path::new("~/a b")]),
    ("handoff.executor.<name>.writable", "~/a b", |c| executor(c).writable == [Path::new("~/a b")]),
    ("handoff.executor.<name>.private", "~/a b", |c| executor(c).private == [Path::new("~/a b")]),
    ("handoff.subagent.<name>.private", "~/a b", |c| subagent(c).private == [Path::new("~/a b")]),
    ("handoff.executor.<name>.login", "~/a b", |c| executor(c).login == [Path::new("~/a b")]),
    ("handoff.subagent.<name>.login", "~/a b", |c| subagent(c).login == [Path::new("~/a b")]),
    ("handoff.subagent.<name>.sandbox", "none", |c| subagent(c).sandbox == Some(Asked::None)),
    ("handoff.subagent.<name>.network", "any", |c| subagent(c).network == Some(Network::Any)),
    ("handoff.subagent.<name>.home", "real", |c| subagent(c).home == Some(Home::Real)),
    ("handoff.subagent.<name>.readable", "~/a b", |c| subagent(c).readable == [Path::new("~/a b")]),
    ("handoff.subagent.<name>.writable", "~/a b", |c| subagent(c).writable == [Path::new("~/a b")]),
    ("handoff.subagent.<name>.command", "do it", |c| subagent(c).command.as_deref() == Some("do it")),
    ("handoff.subagent.<name>.setup", "lay out", |c| subagent(c).setup.as_deref() == Some("lay out")),
    ("handoff.subagent.<name>.verify", "look", |c| subagent(c).verify.as_deref() == Some("look")),
    ("handoff.subagent.<name>.onVerifyFail", "keep", |c| subagent(c).on_verify_fail == Some(OnVerifyFail::Keep)),
    ("handoff.subagent.<name>.timeout", "90", |c| subagent(c).timeout == Some(90)),
    ("handoff.subagent.<name>.maxAttempts", "1", |c| subagent(c).max_attempts == Some(1)),
    ("handoff.subagent.<name>.env", "A=", |c| subagent(c).env["A"].is_empty()),
    ("handoff.subagent.<name>.passEnv", "A", |c| subagent(c).pass_env == ["A"]),
    ("handoff.subagent.<name>.secretEnv", "A", |c| secrets(subagent(c)) == ["A"]),
    ("handoff.queue.<name>.concurrency", "3", |c| queue(c).concurrency == Some(3)),
    ("handoff.queue.<name>.pattern", "line", |c| queue(c).pattern.as_deref() == Some("line")),
    ("handoff.queue.<name>.rules", "rules.json", |c| queue(c).rules.as_deref() == Some(Path::new("rules.json"))),
    ("handoff.queue.<name>.maxAttempts", "5", |c| queue(c).max_attempts == Some(5)),
    ("handoff.captureTimeout", "7", |c| c.capture_timeout == 7),
    ("handoff.maxCrashes", "0", |c| c.max_crashes == 0),
    ("handoff.heartbeat", "200ms", |c| c.heartbeat == Duration::from_millis(200)),
    ("handoff.lostAfter", "2m", |c| c.lost_after == Duration::from_secs(120)),
    ("handoff.via.interval", "1s", |c| c.via_interval == Duration::from_secs(1)),
    ("handoff.remoteTimeout", "10m", |c| c.remote_timeout == Duration::from_secs(600)),
    ("handoff.maxItems", "1m", |c| c.max_items == 1 << 20),
    ("handoff.durability", "relaxed", |c| c.durability == Durability::Relaxed),
    ("handoff.workspace.root", "/var/tmp/x", |c| c.workspace_root.as_deref() == Some(Path::new("/var/tmp/x"))),
    ("handoff.workspace.keep", "On", |c| c.keep),
    ("handoff.workspace.copy", "build/", |c| c.workspace_copy == ["build"]),
    ("handoff.workspace.link", "*/node_modules", |c| c.workspace_link == ["*/node_modules"]),
    ("handoff.workspace.lfs", "no", |c| !c.workspace_lfs),
    ("handoff.workspace.sparse", "no", |c| !c.workspace_sparse),
    ("handoff.workspace.refs", "no", |c| !c.workspace_refs),
    ("handoff.workspace.submodules", "true", |c| c.workspace_submodules),
    ("handoff.submodules", "capture", |c| c.capture_submodules),
    ("handoff.workspace.cap", "2g", |c| c.workspace_cap == 2 << 30),
    ("handoff.workspace.inputs", "in", |c| c.inputs == "in"),
    ("handoff.workspace.outputs", "out", |c| c.outputs == "out"),
    ("handoff.maxProductSize", "1G", |c| c.max_product_size == 1 << 30),
    ("handoff.schema.<id>@<version>.path", "s.json", |c| {
        c.schemas[&"note@1".parse().unwrap()].path == Path::new("s.json")
    }),
    ("handoff.shape.<id>.path", "s.json", |c| c.shapes[OWN].path == Path::new("s.json")),
    ("handoff.pipeline.<id>.path", "s.json", |c| c.pipelines[OWN].path == Path::new("s.json")),
    ("handoff.maxFetchSize", "12", |c| c.max_fetch_size == 12),
    ("handoff.anchor.<name>.type", "git", |c| c.anchors[OWN]["type"] == "git"),
    ("handoff.anchor.<name>.guarantee", "detect", |c| c.anchors[OWN]["guarantee"] == "detect"),
    ("handoff.anchor.<name>.timeout", "5", |c| c.anchors[OWN]["timeout"] == "5"),
    ("handoff.anchor.<name>.url", "../v", |c| c.anchors[OWN]["url"] == "../v"),
    ("handoff.anchor.<name>.branches", "b", |c| c.anchors[OWN]["branches"] == "b"),
    ("handoff.anchor.<name>.ca", "ca.pem", |c| c.anchors[OWN]["ca"] == "ca.pem"),
    ("handoff.anchor.<name>.bucket", "b", |c| c.anchors[OWN]["bucket"] == "b"),
    ("handoff.anchor.<name>.prefix", "p/", |c| c.anchors[OWN]["prefix"] == "p/"),
    ("handoff.anchor.<name>.endpoint", "https://s", |c| c.anchors[OWN]["endpoint"] == "https://s"),
    ("handoff.anchor.<name>.region", "eu", |c| c.anchors[OWN]["region"] == "eu"),
    ("handoff.anchor.<name>.credentials", "c", |c| c.anchors[OWN]["credentials"] == "c"),
    ("handoff.anchor.<name>.profile", "p", |c| c.anchors[OWN]["profile"] == "p"),
    ("handoff.anchor.<name>.retentionDays", "9", |c| c.anchors[OWN]["retentiondays"] == "9"),
];

fn secrets(executor: &Executor) -> Vec<&str> {
    executor.secret_env.iter().map(|secret| secret.name.as_str()).collect()
}

fn executor(config: &Config) -> &Executor {
    &config.executors[OWN]
}

fn subagent(config: &Config) -> &Executor {
    &config.subagents[OWN]
}

fn queue(config: &Config) -> &Queue {
    &config.queues[OWN]
}

/// Returns the name of a setting as a user writes it.
fn own(name: &str) -> String {
    full_name(name, if name.contains("@<version>") { "note@1" } else { OWN })
}

/// Returns the same in the other letter case, where git says that it means the same.
fn odd(key: &str) -> String {
    let (rest, field) = key.rsplit_once('.').unwrap();
    format!("{}.{}", rest.replacen("handoff", "HandOff", 1), field.to_ascii_uppercase())
}

#[test]
fn every_setting_has_a_sample() {
    let samples: Vec<_> = SAMPLES.iter().map(|(name, ..)| *name).collect();
    let (mut samples, mut names) = (samples, names().collect::<Vec<_>>());
    samples.sort_unstable();
    names.sort_unstable();
    assert_eq!(samples, names);
}

#[test]
fn every_setting_works_in_any_letter_case() {
    let clone = TestClone::new();
    let (untouched, before) = (clone.read(".git/config"), format!("{:?}", read(&clone).unwrap()));
    for (name, value, holds) in SAMPLES {
        for key in [own(name), odd(&own(name))] {
            clone.git(&["config", &key, value]);
            let config = read(&clone).unwrap();
            assert!(holds(&config), "{key} = {value}: {config:?}");
            assert_eq!(config.warnings, [""; 0], "{key}");
            assert_ne!(format!("{config:?}"), before, "{key} = {value} is what holds anyway");
            clone.write(".git/config", &untouched);
        }
    }
}

#[test]
fn a_file_in_the_work_tree_sets_everything_except_trust() {
    let tracked = |setting: &str| {
        let mut entries = SETTINGS.iter().flat_map(|group| group.entries);
        entries.find(|entry| entry.names.contains(&setting)).unwrap().tracked
    };
    let clone = TestClone::new();
    // The files that it was read from differ, whatever counts.
    let debug_text = |config: Config| format!("{:?}", Config { outside: Outside::default(), ..config });
    let before = debug_text(read(&clone).unwrap());
    clone.git(&["config", "include.path", "../team.config"]);
    for (name, value, holds) in SAMPLES {
        clone.write("team.config", "");
        clone.git(&["config", "--file", "team.config", &own(name), value]);
        let mut config = read(&clone).unwrap();
        if tracked(name) || asks_for_no_less(name) {
            // Its limits are separate, because they raise none.
            let executors = config.executors.values_mut().chain(config.subagents.values_mut());
            executors.for_each(|own| own.limits = own.tracked_limits.or(own.limits));
            config.limits = config.tracked_limits.or(config.limits);
            assert!(holds(&config), "{name}");
            continue;
        }
        let warning = config.warnings.pop().unwrap();
        let (_, words) = warning.split_once("` ").unwrap();
        assert_eq!(
            words, "is ignored: a file inside the work tree sets it, and a commit can change that file",
            "{name}"
        );
        assert_eq!(debug_text(config), before, "{name}");
    }
    let outside: Vec<_> = names().filter(|name| !tracked(name) && !name.starts_with("handoff.anchor.")).collect();
    let reach: Vec<_> =
        SETTINGS.iter().find(|group| group.title == "What it may reach").unwrap().entries.iter().collect();
    let reach = reach.iter().flat_map(|entry| entry.names).copied();
    let trust = ["handoff.signingKey", "handoff.signers", "handoff.revoked"];
    let given = [
        "handoff.executor.<name>.passEnv",
        "handoff.subagent.<name>.passEnv",
        "handoff.executor.<name>.secretEnv",
        "handoff.subagent.<name>.secretEnv",
        "handoff.executor.<name>.versionCommand",
        "handoff.subagent.<name>.versionCommand",
        "handoff.recordProgram",
        "handoff.workspace.root",
        "handoff.onProtectedChange",
        "handoff.executor.<name>.heldOut",
        "handoff.subagent.<name>.heldOut",
        "handoff.executor.<name>.heldOutFeedback",
        "handoff.subagent.<name>.heldOutFeedback",
        "handoff.executor.<name>.onProtectedChange",
        "handoff.subagent.<name>.onProtectedChange",
    ];
    let others = ["handoff.secrets.allow", "handoff.mcp.drive", "handoff.mcp.executors", "handoff.mcp.remotes"];
    assert_eq!(sorted(outside), sorted(trust.into_iter().chain(given).chain(reach).chain(others).collect()));
    assert!(names().all(|name| !name.starts_with("handoff.anchor.") || !tracked(name)));
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

/// Returns whether the sample of a setting counts wherever it stands, because it asks for no less
/// than nothing does.
fn asks_for_no_less(name: &str) -> bool {
    name.ends_with("network")
}

#[test]
fn the_default_that_is_documented_is_the_one_that_holds() {
    let mut compared = 0;
    let clone = TestClone::new();
    let before = format!("{:?}", read(&clone).unwrap());
    for entry in SETTINGS.iter().flat_map(|group| group.entries) {
        let value = entry.default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        let (name, Some(value)) = (entry.names[0], value.filter(|value| !value.contains(['`', '$']))) else { continue };
        // An absent named setting stays unset; its default applies on use.
        if name.contains('<') {
            continue;
        }
        clone.git(&["config", name, value]);
        assert_eq!(format!("{:?}", read(&clone).unwrap()), before, "{name}");
        compared += 1;
    }
    assert!(compared >= 8, "only {compared} defaults were compared");
}

#[test]
fn documented_defaults_of_tables_match_the_code() {
    let documented = |setting: &str| {
        let mut entries = SETTINGS.iter().flat_map(|group| group.entries);
        let default = entries.find(|entry| entry.names.contains(&setting)).unwrap().default;
        default.trim_matches('`').parse::<u64>().unwrap()
    };
    let item =
        git_handoff::plan::parse_item(br#"{"id":"a","executor":"command","inputs":{"command":"true"}}"#).unwrap();
    let config = Config::default();
    let timeout = command::resolve(&item, &config).unwrap().timeout;
    assert_eq!(documented("handoff.executor.<name>.timeout"), timeout);
    let attempts = command::max_attempts(&item, "default", &config);
    assert_eq!(documented("handoff.queue.<name>.maxAttempts"), u64::from(attempts));
    assert_eq!(documented("handoff.anchor.<name>.timeout"), anchor::PATIENCE.as_secs());
}

#[test]
fn the_last_one_holds_and_lists_grow() {
    let clone = TestClone::new();
    for (key, value) in [
        ("handoff.maxItems", "1"),
        ("handoff.maxItems", "2"),
        ("handoff.executor.x.env", "A=1"),
        ("handoff.executor.x.env", "B=2"),
        ("handoff.executor.x.env", "A=3"),
        ("handoff.executor.x.passEnv", "A B"),
        ("handoff.executor.x.passEnv", "C"),
        ("handoff.signingKey", "mine"),
        ("handoff.signingKey", ""),
    ] {
        clone.git(&["config", "--add", key, value]);
    }
    let config = read(&clone).unwrap();
    assert_eq!(config.max_items, 2);
    let executor = &config.executors["x"];
    assert_eq!(executor.env, [("A", "3"), ("B", "2")].map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert_eq!(executor.pass_env, ["A", "B", "C"]);
    assert_eq!(config.signing_key, None, "an empty one asks for the repository's own");
    assert_eq!(config.subagents.len() + config.queues.len(), 0);
}
