//! The settings that decide about a recording are sealed with it, however it goes on.

use std::fs;

use serde_json::json as object;

use super::{json, record};
use crate::common::program_path;
use crate::common::repo::{TestRepo, item, wait_for};

/// Begins a recording with options of git and of `record`, and kills its driver while the command
/// runs. The command ends by itself in a second attempt.
fn interrupt(repo: &TestRepo, run: &str, settings: &[&str], options: &[&str], script: &str) {
    let mark = repo.path(&format!("{run}.mark"));
    let script = format!("if mkdir {} 2>/dev/null; then sleep 60; fi; {script}", mark.display());
    let args = [&["record", "--as", run], options, &["--", "sh", "-c", &script]].concat();
    let driver = repo.start_with(&args, |command| {
        for (number, setting) in settings.iter().enumerate() {
            let (key, value) = setting.split_once('=').unwrap();
            command.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    });
    wait_for("the command", || mark.exists());
    driver.kill();
}

#[test]
fn a_recording_continues_with_its_check_and_its_limits() {
    let repo = TestRepo::new();
    repo.env.write("open", "");
    let writable = format!("handoff.executor.command.writable={}", repo.env.path().display());
    let protect = "handoff.executor.command.protect=dir/";
    for (number, go_on) in [["run", "r0"].as_slice(), &["record", "--as", "r1"], &["run"]].into_iter().enumerate() {
        let run = format!("r{number}");
        let settings = [writable.as_str(), protect, "handoff.executor.command.passEnv=VISIBLE"];
        interrupt(
            &repo,
            &run,
            &settings,
            &["--check", "grep -q four a.txt"],
            "echo \"seen: $VISIBLE\"; echo x >dir/b.txt",
        );
        repo.config("handoff.executor.command.writable", repo.env.path().to_str().unwrap());
        let mut command = repo.env.command(program_path(), "repo");
        command.args(go_on).env("VISIBLE", "yes");
        repo.env.ended(command).ends(4);
        repo.env.git(["config", "--unset", "handoff.executor.command.writable"]).success();
        // Wrong work is not green.
        let status = repo.status(&run);
        assert_eq!((&status["items"][0]["red"], &status["sealed"]), (&true.into(), &true.into()), "{run}");
        let end = repo.entries(&run).into_iter().find(|entry| entry["kind"] == "item.reconciled").unwrap();
        assert_eq!(end["protected"][0]["path"], "dir/b.txt", "{run}");
        assert_eq!(end["check"]["exit"]["code"], 1, "{run}");
        assert_eq!(repo.env.handoff(["cat", &format!("{run}/record:transcript")]).success(), "seen: yes\n");
    }
}

#[test]
fn a_recording_keeps_the_network_that_it_began_with() {
    let repo = TestRepo::new();
    repo.config("handoff.sandbox", "auto");
    repo.config("handoff.executor.command.writable", repo.env.path().to_str().unwrap());
    interrupt(&repo, "r", &["handoff.network=none"], &[], "true");
    repo.env.handoff(["run", "r"]).success();
    let manifest = json(&repo.env.handoff(["cat", "r/record:manifest"]).success());
    assert_eq!(manifest["claims"]["network"], "none");
}

#[test]
fn a_plan_of_a_person_carries_no_sealed_settings() {
    let repo = TestRepo::new();
    let mut sealed = item("record", "true");
    sealed["inputs"]["recorded"] = object!({"executor": "claude"});
    let file = repo.plan("r", &[sealed.clone()]);
    let answer = json(&repo.env.handoff(["validate", "--json", &file]).exit(1).stdout);
    assert_eq!(
        (&answer["problems"][0]["code"], &answer["problems"][0]["path"]),
        (&"reserved-key".into(), &"items[0].inputs.recorded".into())
    );
    // Neither do items that are added later.
    let open = object!({"id": "open", "openEnded": true, "items": [item("a", "true")]});
    repo.env.write("open.json", &open.to_string());
    repo.env.handoff(["submit", "../open.json"]).success();
    repo.env.write("more.json", &object!({"id": "open", "items": [sealed]}).to_string());
    repo.env.handoff(["extend", "open", "../more.json"]).ends(1);
}

#[test]
fn record_warns_about_a_dirty_work_tree() {
    let repo = TestRepo::new();
    repo.env.write("repo/a.txt", "changed\n");
    repo.env.write("repo/new.txt", "new\n");
    let output = record(&repo, &["--as", "r"], "true").exit(0);
    let warning = output.stderr.lines().find(|line| line.starts_with("warning: not committed")).unwrap();
    assert_eq!(
        warning,
        "warning: not committed, so that no item sees it: the change to a.txt; not tracked, so that no item sees it: new.txt"
    );
}

#[test]
fn temporary_files_never_lie_in_the_work_tree() {
    for folder in ["", ".", "tmp"] {
        let repo = TestRepo::new();
        fs::create_dir(repo.path("repo/tmp")).unwrap();
        let tmpdir = match folder {
            "tmp" => repo.path("repo/tmp").to_str().unwrap().to_owned(),
            other => other.to_owned(),
        };
        let with = |args: &[&str]| {
            let mut command = repo.env.command(program_path(), "repo");
            command.args(args).env("TMPDIR", &tmpdir);
            repo.env.ended(command).success()
        };
        repo.env.write("repo/a.txt", "changed\n");
        with(&["record", "--here", "--dirty", "--as", "r", "--", "sh", "-c", "echo y >>a.txt"]);
        let base = repo.env.git(["ls-tree", "-r", "--name-only", "refs/handoff/bases/r"]).success();
        assert_eq!(base, "a.txt\ndir/b.txt\n", "TMPDIR={folder}");
        let patch = repo.env.handoff(["cat", "r/record:patch"]).success();
        assert_eq!(patch.matches("diff --git").count(), 1, "TMPDIR={folder}: {patch}");
    }
}
