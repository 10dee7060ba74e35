//! The surroundings of a check: nothing that the worker left in its home directory, its temporary
//! folder, its git directory or its inputs has a say, and honest checks find what they need.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item, wait_for};
use crate::sandbox::scene::has_bubblewrap;

/// How workers are confined: the settings `sandbox` and `home`.
const WAYS: [(&str, &str); 4] = [("none", "private"), ("none", "real"), ("auto", "private"), ("auto", "real")];

/// Runs the same for each way that works here, in a repository of its own.
fn in_each_way(what: &str, test: impl Fn(&TestRepo, &str)) {
    let has_bubblewrap = has_bubblewrap(what);
    for (sandbox, home) in WAYS.iter().filter(|(sandbox, _)| *sandbox == "none" || has_bubblewrap) {
        let repo = TestRepo::new();
        repo.config("handoff.sandbox", sandbox);
        repo.config("handoff.executor.command.home", home);
        repo.config("handoff.executor.command.maxAttempts", "1");
        test(&repo, &format!("sandbox = {sandbox}, home = {home}"));
    }
}

/// An item that needs the output `told.txt` of the item `first`.
fn needing(id: &str, script: &str) -> Value {
    let need = json!({ "told.txt": { "from": "first", "select": { "kind": "output", "path": "told.txt" } } });
    json!({ "id": id, "executor": "command", "inputs": { "command": script }, "needs": need })
}

fn first() -> Value {
    let mut first = item("first", "echo no >outputs/told.txt");
    first["inputs"]["check"] = "true".into();
    first
}

/// Drives an item for each attack and checks that all stay red, without a patch.
fn stay_red(repo: &TestRepo, run: &str, attacks: &[(&str, &str, &str)], what: &str) {
    let attacked = |(name, attack, check): &(&str, &str, &str)| {
        let mut attacked = needing(&name.replace(' ', "-"), attack);
        attacked["inputs"]["check"] = (*check).into();
        attacked
    };
    let items: Vec<Value> = std::iter::once(first()).chain(attacks.iter().map(attacked)).collect();
    repo.drive(run, &items).ends(4);
    for (id, item) in repo.items(run).into_iter().filter(|(id, _)| id != "first") {
        assert_eq!(item.status, "failed", "{what}: {id}");
        assert!(item.reason.starts_with("verify-failed: exited with "), "{what}: {id}: {}", item.reason);
        assert!(!item.outputs.contains("patch"), "{what}: {id}");
    }
}

/// Attacks, each with a check that it would turn green.
const ATTACKS: &[(&str, &str, &str)] = &[
    ("home", "echo exit 0 >\"$HOME/.rc\" || true", ". \"$HOME/.rc\" || exit 1"),
    ("npmrc", "echo script-shell=/bin/true >\"$HOME/.npmrc\" || true", "grep -q script-shell \"$HOME/.npmrc\""),
    ("alias", "git config alias.judge '!true'", "git judge"),
    ("hook", "printf '#!/bin/sh\\n' >.git/hooks.sh && git config core.hooksPath x", "git config core.hooksPath"),
    ("exclude", "echo '*' >>.git/info/exclude", "touch new && test -z \"$(git status --porcelain)\""),
    ("commit", "git commit -q --allow-empty -m good", "git log -1 --format=%s | grep good"),
    ("no git", "rm -rf .git", "! git rev-parse HEAD"),
    ("linked git", "mv .git \"$TMPDIR/g\" && ln -s \"$TMPDIR/g\" .git && git config alias.judge '!true'", "git judge"),
    ("temporary", "touch \"$TMPDIR/passed\"", "test -e \"$TMPDIR/passed\""),
    ("input", "chmod u+w inputs/told.txt && echo yes >inputs/told.txt", "grep yes inputs/told.txt"),
    ("more inputs", "chmod -R u+w inputs && touch inputs/more", "test -e inputs/more"),
    ("no inputs", "chmod -R u+w inputs && rm -r inputs && ln -s . inputs", "! grep no inputs/told.txt"),
    ("task", "echo {} >\"$HANDOFF_TASK\" || true", "test \"$(cat \"$HANDOFF_TASK\")\" = {}"),
    (
        "process",
        "(setsid sh -c 'sleep 0.5; while :; do touch late; sleep 0.1; done' </dev/null >/dev/null 2>&1 &) ; true",
        "sleep 1; test -e late",
    ),
    (
        "nameless process",
        "(cd / && env -i setsid sh -c 'cd \"$0\"; sleep 0.5; while :; do touch late; sleep 0.1; done' \"$OLDPWD\" \
         </dev/null >/dev/null 2>&1 &) ; true",
        "sleep 1; test -e late",
    ),
];

#[test]
fn nothing_that_a_worker_leaves_around_its_work_turns_a_check_green() {
    in_each_way("checks after hostile workers", |repo, way| {
        stay_red(repo, "r", ATTACKS, way);
    });
}

#[test]
fn python_loads_nothing_that_the_worker_left_for_it() {
    let is_here = std::process::Command::new("/usr/bin/python3").arg("--version").output();
    if !is_here.is_ok_and(|output| output.status.success()) {
        return;
    }
    in_each_way("checks by Python", |repo, way| {
        let attack = "d=$(/usr/bin/python3 -m site --user-site) && mkdir -p \"$d\" && \
                      echo 'import os; os._exit(0)' >\"$d/usercustomize.py\" || true";
        stay_red(repo, "r", &[("python", attack, "/usr/bin/python3 -c 'raise SystemExit(1)'")], way);
    });
}

#[test]
fn files_that_the_user_had_are_as_they_were() {
    in_each_way("a home directory with settings", |repo, way| {
        // An attempt must not prepare the check of the next one.
        repo.config("handoff.executor.command.maxAttempts", "2");
        repo.env.write("home/.npmrc", "fund=false\n");
        repo.env.write("home/.cargo/config.toml", "[net]\nretry = 3\n");
        let attack = "echo script-shell=/bin/true >>\"$HOME/.npmrc\"; echo jobs >>\"$HOME/.cargo/config.toml\"; true";
        let changed = "grep -q script-shell \"$HOME/.npmrc\" || grep -q jobs \"$HOME/.cargo/config.toml\"";
        stay_red(repo, "changed", &[("a", attack, changed)], way);
        repo.env.write("home/.npmrc", "fund=false\n");
        repo.env.write("home/.cargo/config.toml", "[net]\nretry = 3\n");
        let check = "grep -q fund \"$HOME/.npmrc\" && grep -q retry \"$HOME/.cargo/config.toml\"";
        repo.config("handoff.executor.command.verify", check);
        let output = repo.drive("kept", &[item("a", "echo x >x")]);
        assert_eq!(output.status, Some(0), "{way}: {}", output.stderr);
    });
}

#[test]
fn honest_checks_find_what_they_need() {
    in_each_way("honest checks", |repo, way| {
        for (path, text) in
            [(".cargo/bin/tool", "cargo"), (".nvm/versions/node/v1/bin/tool", "node"), (".pyenv/bin/t", "py")]
        {
            repo.env.write(&format!("home/{path}"), &format!("#!/bin/sh\necho {text}\n"));
            let program = repo.path(&format!("home/{path}"));
            std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        repo.env.write("repo/.gitignore", "node_modules/\n");
        repo.env.git(["add", "--all"]).success();
        repo.env.git(["commit", "--quiet", "--message", "Ignore"]).success();
        let work = "echo three >>a.txt; mkdir -p node_modules/m; echo installed >node_modules/m/index.js; \
                    git commit -qam work; echo out >outputs/o.txt";
        let checks = [
            ("tools", "test \"$($HOME/.cargo/bin/tool)\" = cargo && test \"$($HOME/.pyenv/bin/t)\" = py"),
            ("nvm", "test \"$($HOME/.nvm/versions/node/v1/bin/tool)\" = node"),
            (
                "identity",
                "test \"$(git config user.name)\" = Ada && test \"$(git config user.email)\" = ada@example.com",
            ),
            (
                "head",
                "test \"$(git rev-parse HEAD)\" = \"$HANDOFF_BASE\" && test \"$(git log -1 --format=%s)\" = Ignore",
            ),
            (
                "diff",
                "test \"$(git diff --name-only HEAD)\" = a.txt && test \"$(git status --porcelain)\" = ' M a.txt'",
            ),
            ("commit", "git commit -qam try && git show --stat HEAD | grep -q a.txt"),
            ("inputs", "test \"$(cat inputs/told.txt)\" = no"),
            ("outputs", "test \"$(cat outputs/o.txt)\" = out"),
            ("modules", "test \"$(cat node_modules/m/index.js)\" = installed"),
            ("temporary", "touch \"$TMPDIR/x\" \"$HOME/x\""),
            ("task", "test -s \"$HANDOFF_TASK\" && grep -q told.txt"),
        ];
        let honest = |(name, check): &(&str, &str)| {
            let mut honest = needing(name, work);
            honest["inputs"]["check"] = (*check).into();
            honest
        };
        let items: Vec<Value> = std::iter::once(first()).chain(checks.iter().map(honest)).collect();
        repo.drive("r", &items).ends(0);
        let entries = repo.entries("r");
        for (name, _) in checks {
            let end = entries.iter().rfind(|entry| entry["item"] == name);
            assert_eq!(end.unwrap()["verify"]["passed"], json!(true), "{way}: {name}");
        }
        // The worker's commits are found after the check.
        repo.no_process_is_left();
        assert_eq!(repo.worktrees().len(), 0, "{way}");
    });
}

#[test]
fn a_check_in_a_pipeline_or_of_a_recording_has_surroundings_of_its_own() {
    in_each_way("checks in pipelines and recordings", |repo, way| {
        let plant = "touch \"$TMPDIR/passed\"; git config alias.judge '!true'; true";
        let check = "test -e \"$TMPDIR/passed\" || git judge";
        for lens in ["gate", "verify"] {
            let script = json!({ "kind": "script", "command": check, "lens": lens });
            let blocks = json!([{ "kind": "agent" }, script, { "kind": "capture", "what": "patch" }]);
            let id = format!("p.{lens}");
            repo.env.write("p.json", &json!({ "schemaVersion": 1, "id": id, "blocks": blocks }).to_string());
            repo.env.handoff(["pipeline", "add", "../p.json"]).success();
            let mut piped = item("a", plant);
            piped["inputs"]["pipeline"] = id.into();
            repo.drive(lens, &[piped]).ends(4);
            let reason = repo.item(lens, "a").reason;
            assert!(reason.starts_with(&format!("{lens}-failed: blocks[1] exited with ")), "{way}: {reason}");
        }
        repo.env.handoff(["record", "--as", "rec", "--check", check, "--", "sh", "-c", plant]).ends(4);
        assert_eq!(repo.status("rec")["items"][0]["red"], json!(true), "{way}");
    });
}

#[test]
fn a_driver_that_dies_during_a_check_leaves_the_work_of_the_worker() {
    let repo = TestRepo::new();
    let mark = repo.path("mark");
    let check = format!("mkdir {} && sleep 60 || true", mark.display());
    repo.config("handoff.executor.command.verify", &check);
    let side = "git checkout -q -b side; git commit -q --allow-empty -m kept; git checkout -q main";
    repo.submit("r", &[item("a", &format!("{side}; echo work >>a.txt"))]);
    let driver = repo.start(&["run", "r"]);
    wait_for("the check", || mark.exists());
    driver.kill();
    let output = repo.env.handoff(["run", "r"]);
    assert!(output.stderr.contains("these commits are saved in refs/handoff/salvage/r:"), "{}", output.stderr);
    output.ends(0);
    repo.is_clean();
}

#[test]
fn every_screen_marks_checks_in_the_worktree_of_the_worker() {
    let words = "check in the worker's worktree";
    let repo = TestRepo::new();
    repo.config("handoff.executor.command.verify", "grep -q three a.txt");
    let ran = repo.drive("r", &[item("a", "echo three >>a.txt")]);
    let recorded = repo.env.handoff(["record", "--as", "rec", "--", "sh", "-c", "echo three >>a.txt"]);
    let [status, run_details, item_shown] =
        [vec!["status", "r"], vec!["show", "r"], vec!["show", "r/a"]].map(|args| repo.env.handoff(args).success());
    let markdown = repo.env.handoff(["report", "--markdown", "r"]).success();
    for screen in [&ran.stdout, &recorded.stdout, &status, &run_details, &item_shown, &markdown] {
        assert!(screen.lines().any(|line| line == words), "{screen}");
    }
    repo.env.handoff(["report", "r", "-o", "page.html"]).success();
    let page = std::fs::read_to_string(repo.path("repo/page.html")).unwrap();
    assert!(page.contains("Check ran") && page.contains("check in the worker&#39;s worktree"), "{page:.0}");
    // A check that failed proves nothing that could be doubted.
    repo.config("handoff.executor.command.onVerifyFail", "keep");
    let red = repo.drive("red", &[item("a", "echo four >>a.txt")]);
    assert!(!red.stdout.contains(words), "{}", red.stdout);
    // Nor is it true of a fresh worktree.
    repo.config("handoff.executor.command.verifyIn", "fresh");
    let fresh = repo.drive("fresh", &[item("a", "echo three >>a.txt")]);
    assert!(fresh.status == Some(0) && !fresh.stdout.contains(words), "{}", fresh.stdout);
    assert!(!repo.env.handoff(["show", "fresh/a"]).success().contains(words));
}

#[test]
fn a_fresh_worktree_has_a_home_directory_that_no_worker_wrote() {
    in_each_way("fresh worktrees after hostile workers", |repo, way| {
        repo.config("handoff.executor.command.verifyIn", "fresh");
        stay_red(repo, "r", &ATTACKS[..2], way);
    });
}

#[test]
fn submodules_have_git_directories_of_their_own_too() {
    for checked_out in ["false", "true"] {
        let repo = TestRepo::new();
        repo.env.git_in(".", ["init", "--quiet", "lib"]).success();
        repo.env.write("lib/l.txt", "l\n");
        repo.env.git_in("lib", ["add", "--all"]).success();
        repo.env.git_in("lib", ["commit", "--quiet", "--message", "Lib"]).success();
        let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "sub"];
        repo.env.git(add).success();
        repo.env.git(["commit", "--quiet", "--message", "Add"]).success();
        repo.config("handoff.workspace.submodules", checked_out);
        repo.config("handoff.executor.command.maxAttempts", "1");
        let attack = "git -C sub config alias.judge '!true'";
        stay_red(&repo, "alias", &[("a", attack, "git -C sub judge")], checked_out);
        let gone = "rm -rf sub && ln -s . sub";
        repo.config("handoff.executor.command.verify", "git rev-parse HEAD && test -L sub");
        let linked = repo.drive("linked", &[item("a", gone)]);
        assert!(!linked.stdout.contains("verify-failed"), "{}", linked.stdout);
        let honest = if checked_out == "true" {
            "test \"$(git -C sub log -1 --format=%s)\" = Lib && test -z \"$(git -C sub status --porcelain)\""
        } else {
            "! git -C sub rev-parse HEAD && test -z \"$(git status --porcelain)\""
        };
        repo.config("handoff.executor.command.verify", honest);
        let done = repo.drive("honest", &[item("a", "true")]);
        assert_eq!(done.status, Some(0), "{checked_out}: {}", done.stderr);
    }
}
