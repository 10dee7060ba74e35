//! Files that a program runs by itself: `apply` names them, and asks.

use serde_json::{Value, json};

use crate::common::clone::TestClone;
use crate::common::repo::{TestRepo, item};

/// A change of one file.
fn change(path: &str, text: &str) -> String {
    format!("mkdir -p $(dirname {path}) && printf '%s' '{text}' >{path}")
}

#[test]
fn apply_asks_before_writing_auto_run_files() {
    let clone = TestClone::new();
    let script =
        [change(".claude/settings.json", "{}"), change("web/.envrc", "x"), change("other.txt", "x")].join(" && ");
    clone.done("r", &[("edit", &script, None)]);
    for arguments in [&["apply", "r"][..], &["apply", "r", "--dry-run"], &["apply", "r/edit", "--branch", "new"]] {
        let (code, stdout, stderr) = clone.handoff(arguments);
        assert_eq!(
            (code, &*stdout, &*stderr),
            (
                1,
                "",
                "error: programs run these files by themselves: .claude/settings.json, web/.envrc; nothing was changed\n\
                 hint: git handoff cat r/ITEM:patch   # after reading it: git handoff apply … --with-hooks\n"
            )
        );
    }
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
    let (code, _, stderr) = clone.handoff(&["--json", "apply", "r"]);
    let answer: Value = serde_json::from_str(&stderr).expect("an answer");
    assert_eq!((code, &answer["code"]), (1, &json!("runs-by-itself")), "{answer}");
    let (apply_code, apply_answer) = clone.answer(&["apply", "r", "--with-hooks"]);
    assert_eq!(apply_code, 0, "{apply_answer}");
    assert_eq!(clone.read("web/.envrc"), "x");
    // There is no question about the same files again.
    clone.git(&["commit", "--quiet", "--message", "Taken"]);
    assert_eq!(clone.answer(&["apply", "r"]).0, 0);
}

#[test]
fn a_conflict_hides_no_file_that_runs_by_itself() {
    let clone = TestClone::new();
    let script = format!("sed -i s/two/TWO/ main.txt && {}", change(".mcp.json", "{}"));
    clone.done("r", &[("edit", &script, None)]);
    clone.write("main.txt", "one\n2\nthree\nfour\nfive\n");
    clone.git(&["commit", "--all", "--quiet", "--message", "Mine"]);
    let (code, _, stderr) = clone.handoff(&["apply", "r", "--commit", "--3way"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.starts_with("error: programs run these files by themselves: .mcp.json; "), "{stderr}");
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
}

#[test]
fn of_some_files_only_values_that_run_count() {
    let clone = TestClone::new();
    clone.write("package.json", r#"{"scripts": {"test": "a", "prepare": "husky"}, "version": "1"}"#);
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "--message", "Package"]);
    for (run, text, expected) in [
        ("plain", r#"{"scripts": {"test": "b", "prepare": "husky"}, "version": "2"}"#, 0),
        ("fewer", r#"{"scripts": {"test": "a"}, "version": "1"}"#, 0),
        ("more", r#"{"scripts": {"test": "a", "prepare": "husky", "postinstall": "x"}, "version": "1"}"#, 1),
        ("other", r#"{"scripts": {"test": "a", "prepare": "x"}, "version": "1"}"#, 1),
        ("broken", r#"{"scripts": "#, 1),
    ] {
        clone.done(run, &[("edit", &change("package.json", text), None)]);
        assert_eq!(clone.handoff(&["apply", run, "--dry-run"]).0, expected, "{run}");
    }
}

#[test]
fn links_are_no_way_around_it() {
    let clone = TestClone::new();
    std::fs::create_dir(clone.root().join("tools")).expect("a folder is made");
    clone.write("tools/claude.json", "{}");
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "--message", "Tools"]);
    clone.done("folder", &[("edit", "mkdir x && echo 1 >x/settings.json && ln -s x .claude", None)]);
    assert_eq!(clone.handoff(&["apply", "folder", "--dry-run"]).0, 1);
    std::fs::create_dir(clone.root().join(".claude")).expect("a folder is made");
    std::os::unix::fs::symlink("../tools/claude.json", clone.root().join(".claude/settings.json"))
        .expect("a link is made");
    clone.git(&["add", "--force", "."]);
    clone.git(&["commit", "--quiet", "--message", "Link"]);
    clone.done("target", &[("edit", "echo evil >tools/claude.json", None)]);
    let (code, _, stderr) = clone.handoff(&["apply", "target", "--dry-run"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.starts_with("error: programs run these files by themselves: tools/claude.json; "), "{stderr}");
    clone.done("beside", &[("edit", "echo x >tools/other.json", None)]);
    assert_eq!(clone.handoff(&["apply", "beside", "--dry-run"]).0, 0);
}

#[test]
fn on_a_terminal_it_asks_and_any_answer_but_yes_means_no() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "echo x >.envrc")]).ends(0);
    repo.env.write("terminal.py", "import pty, sys; sys.exit(pty.spawn(['sh', '-c', sys.argv[1]]) >> 8)");
    for (answer, code, last) in [("no", 1, "nothing was changed\r\n"), ("yes", 0, "a: applied\r\n")] {
        let line = format!("(sleep 1; echo {answer}; sleep 1) | python3 ../terminal.py 'git handoff apply r'");
        let screen = repo.env.shell("repo", &line).exit(code).stdout;
        let question = "programs run these files by themselves:\r\n  .envrc\r\ntype yes to apply them:\r\n";
        assert!(screen.contains(question) && screen.ends_with(last), "{screen}");
        assert_eq!(repo.path("repo/.envrc").exists(), code == 0);
    }
}

#[test]
fn apply_names_files_that_git_configuration_runs() {
    let clone = TestClone::new();
    std::fs::create_dir_all(clone.root().join("tools/hooks")).expect("a folder is made");
    for path in ["tools/hooks/pre-commit", "tools/pc", "fsm.sh", "clean.sh", "build.gitinc"] {
        clone.write(path, "");
    }
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "--message", "Tools"]);
    let link = clone.root().join(".git/hooks");
    std::fs::create_dir_all(&link).expect("a folder is made");
    let _ = std::fs::remove_file(link.join("post-merge"));
    std::os::unix::fs::symlink("../../tools/pc", link.join("post-merge")).expect("a link is made");
    for (key, value) in
        [("filter.f.clean", "sh ./clean.sh %f"), ("core.fsmonitor", "./fsm.sh"), ("include.path", "../build.gitinc")]
    {
        clone.git(&["config", key, value]);
    }
    for (run, script, expected) in [
        ("link", "echo x >tools/pc", Some("tools/pc")),
        ("filter", "echo x >clean.sh", Some("clean.sh")),
        ("monitor", "echo x >fsm.sh", Some("fsm.sh")),
        ("include", "echo x >build.gitinc", Some("build.gitinc")),
        ("other", "echo x >tools/other; echo x >docs", None),
    ] {
        clone.done(run, &[("edit", script, None)]);
        let (code, _, stderr) = clone.handoff(&["apply", run, "--dry-run"]);
        let error =
            expected.map(|path| format!("error: programs run these files by themselves: {path}; nothing was changed"));
        assert_eq!((code, stderr.lines().next().map(str::to_owned)), (i32::from(expected.is_some()), error), "{run}");
    }
    clone.git(&["config", "core.hooksPath", "tools/hooks"]);
    clone.done("hook", &[("edit", "echo x >tools/hooks/post-checkout", None)]);
    let (code, _, stderr) = clone.handoff(&["apply", "hook", "--dry-run"]);
    assert!(
        code == 1 && stderr.starts_with("error: programs run these files by themselves: tools/hooks/post-checkout;")
    );
}

#[test]
fn apply_names_bare_repositories_and_their_settings() {
    let clone = TestClone::new();
    for folder in ["kept/objects", "kept/refs"] {
        std::fs::create_dir_all(clone.root().join(folder)).expect("a folder is made");
    }
    for path in ["kept/HEAD", "kept/config", "kept/objects/x", "kept/refs/x"] {
        clone.write(path, "base\n");
    }
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "--message", "A fixture"]);
    let half = ("half", "mkdir -p new/refs new/objects && touch new/refs/x new/objects/x", None);
    let other = ("other", "mkdir new && echo x >new/HEAD && echo '[core]' >new/config", None);
    let common = ("common", "mkdir linked && echo x >linked/HEAD", None);
    let rest = ("rest", "mkdir linked && echo ../kept >linked/commondir", None);
    for (run, items, expected) in [
        ("halves", &[half, other][..], Some("new/config")),
        ("one-half", &[half], None),
        ("linked", &[common, rest], Some("linked/config")),
        ("settings", &[("edit", "echo x >>kept/config", None)], Some("kept/config")),
        (
            "hooks",
            &[("edit", "mkdir kept/hooks && echo x >kept/hooks/post-merge", None)],
            Some("kept/hooks/post-merge"),
        ),
        ("objects", &[("edit", "echo x >>kept/objects/x && echo x >>kept/HEAD", None)], None),
        ("removed", &[("edit", "git rm -rq kept", None)], None),
    ] {
        clone.done(run, items);
        let (code, _, stderr) = clone.handoff(&["apply", run, "--dry-run"]);
        let error =
            expected.map(|path| format!("error: programs run these files by themselves: {path}; nothing was changed"));
        assert_eq!((code, stderr.lines().next().map(str::to_owned)), (i32::from(expected.is_some()), error), "{run}");
    }
}

#[test]
fn links_above_a_target_and_chains_of_links_are_followed() {
    let clone = TestClone::new();
    for folder in ["agent", ".claude", "cfg"] {
        std::fs::create_dir(clone.root().join(folder)).expect("a folder is made");
    }
    clone.write("agent/settings.json", "{}");
    clone.write("cfg/mcp.json", "{}");
    for (target, link) in
        [("../agent/settings.json", ".claude/settings.json"), ("chain/mcp.json", ".mcp.json"), ("cfg", "chain")]
    {
        std::os::unix::fs::symlink(target, clone.root().join(link)).expect("a link is made");
    }
    clone.git(&["add", "--force", "."]);
    clone.git(&["commit", "--quiet", "--message", "Links"]);
    let swap = "rm -r agent && mkdir evil && echo 1 >evil/settings.json && ln -s evil agent";
    for (run, script) in [("above", swap), ("chain", "echo 1 >cfg/mcp.json")] {
        clone.done(run, &[("edit", script, None)]);
        let (code, _, stderr) = clone.handoff(&["apply", run, "--dry-run"]);
        assert!(code == 1 && stderr.starts_with("error: programs run these files by themselves: "), "{run}: {stderr}");
    }
}
