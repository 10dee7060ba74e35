//! Settings of the built-in executors, and of executors and subagents that nothing registers.

use git_handoff::model::confinement::{Asked, Home, Network};
use git_handoff::repository::config::Error;

use super::read;
use crate::common::clone::TestClone;
use crate::common::repo::TestRepo;

#[test]
fn a_built_in_executor_has_no_command_line_of_its_own() {
    let clone = TestClone::new();
    let untouched = clone.read(".git/config");
    for (key, why) in [
        (
            "handoff.executor.command.command",
            "an item of the built-in executor `command` says in `inputs.command` what it runs",
        ),
        (
            "handoff.executor.command.Command",
            "an item of the built-in executor `command` says in `inputs.command` what it runs",
        ),
        (
            "handoff.executor.dispatch.command",
            "the built-in executor `dispatch` runs the subagent that an item names: set `handoff.subagent.<name>.command`",
        ),
        (
            "handoff.executor.approval.timeout",
            "people decide about an item of the built-in executor `approval`, and nothing runs",
        ),
    ] {
        clone.write(".git/config", &untouched);
        clone.git(&["config", key, "1"]);
        let Err(error @ Error::BuiltIn { .. }) = read(&clone) else { panic!("{key} is taken") };
        let message = error.to_string();
        assert!(message.starts_with(&format!("the setting `{}` in ", key.to_ascii_lowercase())), "{message}");
        assert!(message.ends_with(&format!(" means nothing: {why}")), "{message}");
        assert!(error.hint().unwrap().as_str().ends_with(&format!("--unset-all {}", key.to_ascii_lowercase())));
    }
    // Subagents may have these names.
    clone.write(".git/config", &untouched);
    clone.git(&["config", "handoff.subagent.command.command", "true"]);
    clone.git(&["config", "handoff.subagent.approval.command", "true"]);
    assert_eq!(read(&clone).unwrap().subagents.len(), 2);
}

#[test]
fn a_subagent_has_the_settings_of_dispatch_below_its_own() {
    let clone = TestClone::new();
    let set = |key: &str, value: &str| clone.git(&["config", "--add", &format!("handoff.{key}"), value]);
    for (key, value) in [
        ("setup", "prepare"),
        ("verify", "check"),
        ("versionCommand", "x -V"),
        ("onVerifyFail", "keep"),
        ("timeout", "7"),
        ("maxAttempts", "3"),
        ("env", "A=dispatch"),
        ("env", "B=dispatch"),
        ("passEnv", "ONE"),
        ("secretEnv", "S=@dispatch"),
        ("secretEnv", "T=@dispatch"),
        ("sandbox", "require"),
        ("network", "loopback"),
        ("home", "real"),
        ("readable", "/r"),
        ("writable", "/w"),
        ("private", "/p"),
        ("login", "/l"),
        ("maxMemory", "1k"),
        ("maxDisk", "2k"),
    ] {
        set(&format!("executor.dispatch.{key}"), value);
    }
    set("subagent.plain.command", "plain");
    for (key, value) in [
        ("command", "own"),
        ("setup", "own-setup"),
        ("timeout", "9"),
        ("env", "A=own"),
        ("passEnv", "TWO"),
        ("secretEnv", "S=@own"),
        ("sandbox", "auto"),
        ("network", "none"),
        ("home", "private"),
        ("readable", "/own"),
        ("maxMemory", "8k"),
    ] {
        set(&format!("subagent.own.{key}"), value);
    }
    let config = read(&clone).unwrap();
    let plain = config.subagent("plain").unwrap();
    let dispatch = &config.executors["dispatch"];
    assert_eq!(plain.command.as_deref(), Some("plain"));
    assert_eq!((&plain.setup, &plain.verify), (&dispatch.setup, &dispatch.verify));
    assert_eq!(plain.version_command.as_deref(), Some("x -V"));
    assert_eq!((plain.on_verify_fail, plain.timeout, plain.max_attempts), (dispatch.on_verify_fail, Some(7), Some(3)));
    assert_eq!(
        (plain.sandbox, plain.network, plain.home),
        (Some(Asked::Require), Some(Network::Loopback), Some(Home::Real))
    );
    assert_eq!(
        (&plain.readable, &plain.writable, plain.limits),
        (&dispatch.readable, &dispatch.writable, dispatch.limits)
    );
    assert_eq!((&plain.private, &plain.login), (&dispatch.private, &dispatch.login));
    let own = config.subagent("own").unwrap();
    assert_eq!((own.setup.as_deref(), own.verify.as_deref(), own.timeout), (Some("own-setup"), Some("check"), Some(9)));
    let env: Vec<_> = own.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!((env.join(" "), own.pass_env.join(" ")), ("A=own B=dispatch".to_owned(), "ONE TWO".to_owned()));
    let secrets: Vec<_> = own.secret_env.iter().map(|secret| format!("{}={:?}", secret.name, secret.source)).collect();
    assert_eq!(secrets, ["T=File(\"dispatch\")", "S=File(\"own\")"]);
    // The stricter confinement applies.
    assert_eq!((own.sandbox, own.network, own.home), (Some(Asked::Require), Some(Network::None), Some(Home::Private)));
    assert_eq!(own.readable, ["/r", "/own"].map(std::path::PathBuf::from));
    assert_eq!((own.limits.memory, own.limits.disk), (Some(8 << 10), Some(2 << 10)));
    assert_eq!(config.subagent("nobody"), None);
}

#[test]
fn a_tracked_file_makes_built_in_executors_stricter_and_never_looser() {
    let clone = TestClone::new();
    let tracked = |key: &str, value: &str| clone.git(&["config", "--file", "team.config", key, value]);
    clone.git(&["config", "include.path", "../team.config"]);
    clone.git(&["config", "handoff.executor.command.sandbox", "require"]);
    clone.git(&["config", "handoff.executor.dispatch.network", "loopback"]);
    clone.git(&["config", "handoff.subagent.s.command", "true"]);
    tracked("handoff.executor.command.sandbox", "auto");
    tracked("handoff.executor.command.network", "none");
    tracked("handoff.executor.command.home", "real");
    tracked("handoff.executor.command.maxMemory", "1k");
    tracked("handoff.executor.dispatch.readable", "/");
    tracked("handoff.executor.dispatch.secretEnv", "S=!steal");
    tracked("handoff.subagent.s.network", "any");
    let config = read(&clone).unwrap();
    let command = config.settings_of("command").unwrap();
    assert_eq!((command.sandbox, command.network, command.home), (Some(Asked::Require), Some(Network::None), None));
    assert_eq!((command.limits.memory, command.tracked_limits.memory), (None, Some(1 << 10)));
    let subagent = config.subagent("s").unwrap();
    assert_eq!(subagent.network, Some(Network::Loopback));
    assert!(subagent.readable.is_empty() && subagent.secret_env.is_empty());
    let ignored = ["command.home", "dispatch.readable", "dispatch.secretenv", "command.sandbox"];
    let ignored = ignored.map(|key| format!("handoff.executor.{key}")).into_iter();
    let ignored = ignored.chain(["handoff.subagent.s.network".to_owned()]).map(|key| {
        format!("`{key}` is ignored: a file inside the work tree sets it, and a commit can change that file")
    });
    assert_eq!(config.warnings, ignored.collect::<Vec<_>>());
}

#[test]
fn settings_of_unregistered_programs_are_reported() {
    let repo = TestRepo::new();
    repo.config("handoff.executor.comand.network", "none");
    repo.config("handoff.executor.mine.command", "true");
    repo.config("handoff.executor.mine.timeout", "5");
    repo.config("handoff.executor.Dispatch.sandbox", "strict");
    repo.config("handoff.subagent.claude.command", "true");
    repo.config("handoff.subagent.claud.network", "none");
    repo.config("handoff.subagent.claud.maxMemory", "1g");
    repo.config("handoff.subagent.elsewhere.timeout", "5");
    let expected = [
        "`handoff.executor.Dispatch.sandbox` has no effect: no executor \"Dispatch\" is registered here; did you mean \"dispatch\"?",
        "`handoff.executor.comand.network` has no effect: no executor \"comand\" is registered here; did you mean \"command\"?",
        "`handoff.subagent.claud.maxmemory`, `handoff.subagent.claud.network` have no effect: no subagent \"claud\" is registered here; did you mean \"claude\"?",
        "`handoff.subagent.elsewhere.timeout` has no effect: no subagent \"elsewhere\" is registered here, which takes `handoff.subagent.elsewhere.command`",
    ];
    let plan = repo.plan("r", &[crate::common::repo::item("a", "true")]);
    for arguments in [["validate", &plan], ["submit", &plan], ["run", "r"]] {
        let output = repo.env.handoff(arguments).exit(0);
        let warned: Vec<&str> = output.stderr.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
        assert_eq!(warned, expected, "{arguments:?}");
    }
    let doctor = repo.env.handoff(["doctor", "--json"]).exit(3);
    let found: serde_json::Value = serde_json::from_str(&doctor.stdout).unwrap();
    let of = |finding: &&serde_json::Value| finding["code"] == "setting-without-effect";
    let found = found["findings"].as_array().unwrap().iter().filter(of);
    let found: Vec<_> =
        found.map(|one| (one["severity"].as_str().unwrap(), one["message"].as_str().unwrap())).collect();
    assert_eq!(
        found,
        [("problem", expected[0]), ("problem", expected[1]), ("problem", expected[2]), ("note", expected[3])]
    );
    // An executor without a command is none that a plan may name.
    let plan_file = repo.plan("n", &[serde_json::json!({ "id": "a", "executor": "comand" })]);
    let refused = repo.env.handoff(["validate", &plan_file]).exit(1);
    assert!(
        refused.stdout.contains(
            "unknown-executor at items[0].executor (item \"a\", line 1): no executor \"comand\" is registered here"
        ),
        "{refused}"
    );
}
