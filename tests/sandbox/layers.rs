//! Which layers there are, what is recorded of them, and what is refused where they are missing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::scene::{Layers, Scene, has_bubblewrap};
use crate::common::Output;
use crate::common::repo::item;
use crate::common::report::{find_entry, find_line, find_row, verdict};

#[test]
fn a_manifest_records_the_layers_and_verify_counts_them() {
    if !has_bubblewrap("the record of all layers") {
        return;
    }
    let scene = Scene::new(Layers::All);
    scene.run_script("all", "true");
    let manifest = scene.manifest("all/a");
    let sandbox = manifest["claims"]["sandbox"].as_str().unwrap();
    let parts: Vec<_> = sandbox.split(' ').map(|layer| layer.split(':').next().unwrap()).collect();
    assert_eq!(
        (parts, &manifest["claims"]["network"]),
        (vec!["landlock", "seccomp", "bwrap"], &json!("any")),
        "{sandbox}"
    );
    let report = scene.handoff(&["verify", "--json", "--require-sandbox", "all"]).exit(0);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["sandbox"], json!({ sandbox: 1 }));
    assert_eq!(manifest.get("sockets"), None);
}

/// Whether Landlock keeps workers from sockets in the file system.
fn landlock_keeps_sockets(sandbox: &str) -> bool {
    let version = sandbox.split(' ').find_map(|layer| layer.strip_prefix("landlock:"));
    version.is_some_and(|version| version.parse::<u32>().unwrap() >= 9)
}

#[test]
fn missing_bubblewrap_reports_reachable_sockets() {
    let scene = Scene::new(Layers::Inner);
    scene.repo.config("handoff.network", "none");
    let script = format!(
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\")' && echo open || echo shut",
        scene.repo.path("beside/socket").display()
    );
    let output = scene.drive("sockets", &[item("a", &script)]).exit(0);
    let written = scene.handoff(&["cat", "sockets/a:transcript"]).stdout;
    let manifest = scene.manifest("sockets/a");
    let stdout = scene.handoff(&["show", "sockets/a"]).stdout;
    let warned = "the user's sockets are reachable, such as those of an SSH agent and of tmux";
    if landlock_keeps_sockets(manifest["claims"]["sandbox"].as_str().unwrap()) {
        assert!(written.ends_with("shut\n") && !output.stderr.contains(warned), "{output}{written}");
        assert_eq!(manifest.get("sockets"), None);
        return;
    }
    assert_eq!(written, "open\n");
    assert_eq!((&manifest["claims"]["sockets"], &manifest["claims"]["network"]), (&json!("reachable"), &json!("none")));
    let less = "bubblewrap is not installed (no `bwrap` in PATH)";
    assert_eq!(
        find_line(&output.stderr, "warning: "),
        format!("warning: workers are confined by less than there could be: {less}; {warned}")
    );
    assert_eq!(
        find_line(&stdout, "  sandbox "),
        format!("  sandbox   {}; the user's sockets were reachable", manifest["claims"]["sandbox"].as_str().unwrap())
    );
    for sandbox in ["require", "strict"] {
        scene.repo.config("handoff.sandbox", sandbox);
        let second_output = scene.drive(sandbox, &[item("a", "true")]).exit(1);
        assert_eq!(
            find_line(&second_output.stderr, "error: "),
            format!("error: `handoff.sandbox` is `{sandbox}`, but this machine cannot enforce it: {less}; {warned}")
        );
        assert_eq!(
            find_line(&second_output.stderr, "hint: "),
            "hint: apt-get install bubblewrap   # or `handoff.sandbox = auto` for what this machine can enforce"
        );
    }
    scene.repo.config("handoff.sandbox", "none");
    scene.repo.config("handoff.network", "any");
    scene.drive("none", &[item("a", "true")]).ends(0);
    assert_eq!(scene.manifest("none/a").get("sockets"), None);
}

#[test]
fn attendant_program_must_match_this_version() {
    let scene = Scene::new(Layers::Inner);
    scene.repo.config("handoff.sandbox", "none");
    let small = scene.repo.path("bin/git-handoff-attempt");
    // The kernel keeps 15 bytes of a name.
    let above = "cat /proc/$PPID/comm";
    assert_eq!(scene.run_script("beside", above), "git-handoff-att\n");
    let other = |script: &str| {
        fs::remove_file(&small).unwrap();
        fs::write(&small, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&small, fs::Permissions::from_mode(0o755)).unwrap();
    };
    for (run, script) in [("older", "echo git-handoff-attempt 0.0.9"), ("failing", "exit 1"), ("empty", "")] {
        other(script);
        assert_ne!(scene.run_script(run, above), "git-handoff-att\n", "{run}");
    }
    fs::remove_file(&small).unwrap();
    assert_ne!(scene.run_script("alone", above), "git-handoff-att\n");
    scene.repo.config("handoff.sandbox", "auto");
    scene.drive("confined", &[item("a", "true")]).ends(0);
    assert!(scene.manifest("confined/a")["claims"]["sandbox"].as_str().unwrap().contains("seccomp"));
}

#[test]
fn import_with_less_confinement_than_required_fails() {
    let scene = Scene::new(Layers::Inner);
    let output = scene.drive("inner", &[item("a", "true")]).exit(0);
    // Which layers are left depends on the kernel.
    let warned =
        "warning: workers are confined by less than there could be: bubblewrap is not installed (no `bwrap` in PATH)";
    assert!(find_line(&output.stderr, "warning: ").starts_with(warned), "{output}");
    scene.handoff(&["verify", "inner"]).ends(0);
    scene.handoff(&["verify", "--require-sandbox=landlock,seccomp", "inner"]).ends(0);
    let less = scene.handoff(&["verify", "--require-sandbox", "inner"]).exit(3);
    let had = "✗ required   bwrap was required, but attempts have the sandbox `landlock:";
    assert!(find_row(&less.stdout, "required").starts_with(had), "{less}");
    scene.repo.config("handoff.sandbox", "none");
    scene.drive("none", &[item("a", "true")]).ends(0);
    assert_eq!(scene.manifest("none/a")["claims"]["sandbox"], "none");
    assert_eq!(scene.manifest("none/a").get("network"), None);
    let missing = scene.handoff(&["verify", "--require-sandbox=seccomp", "none"]).exit(3);
    insta::assert_snapshot!(find_row(&missing.stdout, "required"), @"✗ required   seccomp was required, but attempts have the sandbox `none`");
    for unknown in ["everything", "none", "off", "landlock,none", "seccomp,off"] {
        scene.handoff(&["verify", &format!("--require-sandbox={unknown}"), "none"]).ends(2);
    }
}

#[test]
fn a_run_that_took_products_from_an_unconfined_one_has_less_than_is_required() {
    let scene = Scene::new(Layers::Inner);
    let required = |run: &str| scene.handoff(&["verify", "--require-sandbox=seccomp", run]);
    scene.repo.config("handoff.sandbox", "none");
    scene.drive("loose", &[item("write", "mkdir outputs; echo a >outputs/a")]).ends(0);
    scene.repo.config("handoff.sandbox", "auto");
    let consumer = |from: &str, item_of: &str| {
        let mut item = item("make", "mkdir outputs; cp inputs/a outputs/a");
        item["needs"] =
            serde_json::json!({ "a": { "run": from, "from": item_of, "select": { "kind": "output", "path": "a" } } });
        item
    };
    scene.drive("next", &[consumer("loose", "write")]).ends(0);
    scene.drive("last", &[consumer("next", "make")]).ends(0);
    assert!(scene.manifest("last/make")["claims"]["sandbox"].as_str().unwrap().contains("seccomp"));
    for run in ["next", "last"] {
        scene.handoff(&["verify", run]).ends(0);
        let less = required(run).exit(3).stdout;
        let why = "✗ required   seccomp was required, but the run loose, from which products were imported, has attempts \
                   with the sandbox `none`";
        assert_eq!(find_row(&less, "required"), why);
        assert_eq!(verdict(&less), "✗ MISMATCH");
    }
    // A missing manifest counts as unconfined.
    scene.repo.env.git(["update-ref", "-d", "refs/handoff/runs/next"]).success();
    let less = required("last").exit(3).stdout;
    insta::assert_snapshot!(find_row(&less, "required"), @"✗ required   seccomp was required, but the run next, from which products were imported, has no local copy up to its seal, so its sandbox is unknown");
    scene.handoff(&["verify", "last"]).ends(0);
}

#[test]
fn missing_required_sandbox_is_rejected_before_anything_runs() {
    let scene = Scene::new(Layers::Inner);
    for sandbox in ["require", "strict"] {
        scene.repo.config("handoff.sandbox", sandbox);
        let output = scene.drive(sandbox, &[item("a", "true")]).exit(1);
        assert_eq!(
            find_line(&output.stderr, "error: "),
            format!(
                "error: `handoff.sandbox` is `{sandbox}`, but this machine cannot enforce it: bubblewrap is not installed (no `bwrap` \
                 in PATH); the user's sockets are reachable, such as those of an SSH agent and of tmux"
            )
        );
        assert_eq!(scene.repo.item(sandbox, "a").attempts, 0);
    }
    // A network of its own takes a namespace; that there is none the kernel's filter can see to.
    scene.repo.config("handoff.sandbox", "auto");
    scene.repo.config("handoff.network", "loopback");
    let output = scene.drive("loopback", &[item("a", "true")]).exit(1);
    let why = "error: `handoff.network` is `loopback`, but this machine cannot enforce it: bubblewrap is not installed";
    assert!(find_line(&output.stderr, "error: ").starts_with(why), "{output}");
    scene.repo.config("handoff.sandbox", "none");
    scene.repo.config("handoff.network", "none");
    let second_output = scene.drive("unconfined", &[item("a", "true")]).exit(1);
    insta::assert_snapshot!(second_output.stderr, @"
    error: cannot enforce `handoff.network` = `none`: `handoff.sandbox` is `none`
    hint: git config handoff.sandbox auto   # or leave the network open: git config handoff.network any
    ");
}

#[test]
fn nested_sandbox_failure_gives_a_hint() {
    let note = "    a sandbox cannot start inside the worker's sandbox, which confines the program already: turn its own \
                off (Chromium: --no-sandbox, Codex: --sandbox danger-full-access, Claude Code: `sandbox.enabled` in \
                .claude/settings.json), or set the executor's `sandbox = none`";
    let has_note = |output: &Output| output.stderr.lines().any(|line| line == note);
    for layers in [Layers::None, Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        // The message stands before more lines than are shown.
        let output = scene.drive("nested", &[item("a", "unshare --user true; seq 20; false")]).exit(4);
        assert_eq!(has_note(&output), layers != Layers::None, "{layers:?}: {output}");
        // An agent ends with 0 without the commands that it could not run.
        let done_output = scene.drive("done", &[item("a", "unshare --user true; seq 20")]).exit(0);
        assert_eq!(has_note(&done_output), layers != Layers::None, "{layers:?}: {done_output}");
        let line = ["record", "--", "sh", "-c", "unshare --user true; echo x >x.txt"];
        let line_output = scene.handoff(&line).exit(0);
        assert_eq!(has_note(&line_output), layers != Layers::None, "{layers:?}: {line_output}");
        let fine_output = scene.drive("fine", &[item("a", "echo 'unshare is a word'")]).exit(0);
        assert!(!has_note(&fine_output), "{fine_output}");
        let other_output = scene.drive("other", &[item("a", "echo something else; false")]).exit(4);
        assert!(!has_note(&other_output), "{other_output}");
        let chromium = "echo 'No usable sandbox! Update your kernel' >&2; false";
        let browser_output = scene.drive("browser", &[item("a", chromium)]).exit(4);
        assert_eq!(has_note(&browser_output), layers != Layers::None, "{layers:?}: {browser_output}");
    }
}

#[test]
fn built_in_executors_are_confined_as_their_settings_say() {
    let scene = Scene::new(Layers::Inner);
    let connects = "python3 -c 'import socket; socket.socket()' && echo open >outputs/said || echo shut >outputs/said";
    scene.repo.config("handoff.subagent.own.command", connects);
    let items = [item("a", connects), json!({ "id": "b", "executor": "dispatch", "inputs": { "subagent": "own" } })];
    scene.drive("open", &items).ends(0);
    assert_eq!(scene.manifest("open/a")["claims"]["network"], "any");
    scene.repo.config("handoff.executor.command.network", "none");
    scene.repo.config("handoff.executor.dispatch.network", "none");
    // A subagent's setting does not open what `dispatch` closes.
    scene.repo.config("handoff.subagent.own.network", "any");
    scene.drive("shut", &items).ends(0);
    for id in ["a", "b"] {
        assert_eq!(scene.handoff(&["cat", &format!("shut/{id}:outputs/said")]).stdout, "shut\n");
        assert_eq!(scene.manifest(&format!("shut/{id}"))["claims"]["network"], "none");
    }
    // An attempt with network access is not the same task.
    scene.repo.submit("again", &items);
    scene.handoff(&["run", "--reuse", "again"]).ends(0);
    let log = scene.handoff(&["log", "again"]).stdout;
    let reused = |id: &str| find_entry(&log, &format!("item.reconciled {id} ")).split(", ").nth(1).map(str::to_owned);
    assert_eq!([reused("a"), reused("b")], ["a", "b"].map(|id| Some(format!("reused from shut/{id}"))), "{log}");
    scene.repo.config("handoff.executor.command.sandbox", "none");
    scene.repo.config("handoff.executor.command.network", "any");
    scene.repo.config("handoff.executor.command.readable", "/");
    scene.drive("free", &items[..1]).ends(0);
    assert_eq!(scene.manifest("free/a")["claims"]["sandbox"], "none");
}

#[test]
fn one_executor_may_be_confined_as_no_other_is() {
    let scene = Scene::new(Layers::All);
    scene.repo.config("handoff.subagent.free.command", "echo $HOME >outputs/home");
    scene.repo.config("handoff.subagent.free.sandbox", "none");
    scene.repo.config(
        "handoff.subagent.shut.command",
        "python3 -c 'import socket; socket.socket()' || echo shut >outputs/said",
    );
    scene.repo.config("handoff.subagent.shut.network", "none");
    let dispatch = |name: &str| json!({ "id": name, "executor": "dispatch", "inputs": { "subagent": name } });
    scene.drive("two", &[dispatch("free"), dispatch("shut")]).ends(0);
    assert_eq!(
        scene.handoff(&["cat", "two/free:outputs/home"]).stdout.trim(),
        scene.repo.path("home").to_str().unwrap()
    );
    assert_eq!(scene.handoff(&["cat", "two/shut:outputs/said"]).stdout, "shut\n");
    assert_eq!(scene.manifest("two/free")["claims"]["sandbox"], "none");
    assert_eq!(scene.manifest("two/shut")["claims"]["network"], "none");
}

#[test]
fn a_tracked_file_may_ask_for_more_and_for_nothing_less() {
    let scene = Scene::new(Layers::All);
    let settings = "[handoff]\n\tsandbox = none\n\tnetwork = none\n[handoff \"subagent.a\"]\n\tcommand = true\n\treadable = ~/.ssh\n";
    scene.repo.env.write("repo/tracked", settings);
    scene.repo.config("include.path", "../tracked");
    let output = scene
        .drive("tracked", &[item("a", "python3 -c 'import socket; socket.socket()' || echo shut >outputs/said")])
        .exit(0);
    for key in ["handoff.sandbox", "handoff.subagent.a.readable"] {
        let why = "is ignored: a file inside the work tree sets it, and a commit can change that file";
        assert_eq!(find_line(&output.stderr, &format!("warning: `{key}`")), format!("warning: `{key}` {why}"));
    }
    assert_eq!(scene.handoff(&["cat", "tracked/a:outputs/said"]).stdout, "shut\n");
}

#[test]
fn paths_are_given_below_a_private_home_too() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        let home = scene.repo.path("home");
        scene.repo.config("handoff.subagent.x.command", "sh -c 'cat $HOME/.tool/login && echo new >$HOME/.tool/new && ls -a $HOME && cat $HOME/.netrc || echo hidden'");
        scene.repo.config("handoff.subagent.x.writable", "~/.tool");
        let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" } });
        scene.drive("home", &[item]).ends(0);
        let transcript = scene.handoff(&["cat", "home/a:transcript"]).stdout;
        assert!(
            transcript.contains("SECRET") && transcript.contains("hidden") && !transcript.contains(".ssh"),
            "{layers:?}: {transcript}"
        );
        assert_eq!(fs::read_to_string(home.join(".tool/new")).unwrap(), "new\n");
        scene.repo.config("handoff.subagent.x.home", "real");
        let real_item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" } });
        scene.drive("real", &[real_item]).ends(0);
        let cat_transcript = scene.handoff(&["cat", "real/a:transcript"]).stdout;
        assert!(cat_transcript.contains("hidden"), "{layers:?}: {cat_transcript}");
        scene.repo.config("handoff.subagent.x.writable", "~/.missing");
        let strict_item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" } });
        let output = scene.drive("missing", &[strict_item]).exit(1);
        let missing = scene.repo.path("home/.missing");
        assert_eq!(
            output.stderr,
            format!(
                "error: {0} should be writable but does not exist; create it first\nhint: mkdir -p {0}   # or, for a file: touch\n",
                missing.display()
            )
        );
    }
}

#[test]
fn exit_status_passes_through_all_layers() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        let items = [
            item("code", "exit 7"),
            item("large", "exit 137"),
            item("signal", "kill -9 $$"),
            item("asked", "kill -TERM $$"),
            json!({ "id": "missing", "executor": "command", "inputs": { "command": ["./no-such-program"] }, "maxAttempts": 1 }),
            json!({ "id": "late", "executor": "command", "timeout": 1, "maxAttempts": 1,
                    "inputs": { "command": "trap 'echo asked >$HANDOFF_RESULT.asked; exit 3' TERM; sleep 60 & wait" } }),
            json!({ "id": "daemon", "executor": "command", "maxAttempts": 1,
                    "inputs": { "command": "setsid sh -c 'sleep 600 & sleep 600' >/dev/null 2>&1 & echo done" } }),
        ];
        scene.drive("ends", &items).ends(4);
        let reason = |id: &str| scene.repo.item("ends", id).reason;
        assert_eq!(reason("code"), "exited with 7");
        assert_eq!(reason("large"), "exited with 137");
        assert_eq!(reason("signal"), "was ended by signal 9");
        assert_eq!(reason("asked"), "was ended by signal 15");
        assert_eq!(
            reason("missing"),
            "cannot start `./no-such-program`: there is no such program, or its interpreter is missing: No such file or directory (os error 2)"
        );
        assert_eq!(reason("late"), "ran longer than 1 s");
        assert_eq!(scene.repo.item("ends", "daemon").status, "done");
        scene.repo.no_process_is_left();
    }
}

#[test]
fn standard_input_passes_through_all_layers() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        let long = "x".repeat(300_000);
        let item = json!({ "id": "a", "executor": "command", "inputs": { "command": "cat >outputs/task; cmp outputs/task $HANDOFF_TASK", "text": long } });
        scene.drive("reads", &[item]).ends(0);
        assert!(scene.handoff(&["cat", "reads/a:outputs/task"]).stdout.contains(&long));
    }
}

#[test]
fn strict_gives_of_files_only_what_programs_need() {
    if !has_bubblewrap("the strict sandbox") {
        return;
    }
    let scene = Scene::new(Layers::All);
    scene.repo.env.write("home/.cargo/config.toml", "settings");
    let file = scene.repo.path("home/.cargo/config.toml");
    let script = format!("ls /usr/bin >/dev/null && git log --oneline && cat {} || echo nothing", file.display());
    assert!(scene.run_script("auto", &script).contains("settings"));
    scene.repo.config("handoff.sandbox", "strict");
    let transcript = scene.run_script("strict", &script);
    assert!(!transcript.contains("settings") && transcript.contains("nothing"), "{transcript}");
}

#[test]
fn a_private_network_has_no_other_process_in_it() {
    if !has_bubblewrap("a network of a worker's own") {
        return;
    }
    let scene = Scene::new(Layers::All);
    scene.repo.config("handoff.network", "loopback");
    let script = "python3 -c 'import socket\nserver = socket.create_server((\"127.0.0.1\", 0))\nclient = socket.create_connection(server.getsockname())\nprint(\"inside\")\ntry:\n    socket.create_connection((\"127.0.0.1\", {port}), 2)\n    print(\"outside\")\nexcept OSError: pass\nwith socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:\n    try:\n        s.sendto(b\"x\", (\"192.0.2.1\", 9))\n        print(\"outside\")\n    except OSError: pass'";
    let port = scene.tcp.local_addr().unwrap().port().to_string();
    assert_eq!(scene.run_script("loopback", &script.replace("{port}", &port)), "inside\n");
    assert_eq!(scene.manifest("loopback/a")["claims"]["network"], "loopback");
    assert_eq!(scene.tcp.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
