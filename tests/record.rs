//! Work that is recorded without a plan file: a command in a worktree of its own or in the user's,
//! and commits that were made before.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod left;
mod sealed;
mod stray;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::common::repo::{TestRepo, item};
use crate::common::report::find_line;
use crate::common::{Output, assert_output, program_path};
use crate::sandbox::scene::has_bubblewrap;

/// Records a shell command with options, and returns the output.
fn record(repo: &TestRepo, options: &[&str], script: &str) -> Output {
    let all = ["record"].into_iter().chain(options.iter().copied()).chain(["--", "sh", "-c", script]);
    repo.env.handoff(all.collect::<Vec<_>>())
}

/// Returns the newest run.
fn newest(repo: &TestRepo) -> String {
    let runs = json(&repo.env.handoff(["runs", "--json"]).success());
    runs["runs"][0]["run"].as_str().unwrap().to_owned()
}

fn json(output: &str) -> Value {
    serde_json::from_str(output).unwrap()
}

/// Returns the code of a failure.
fn code(repo: &TestRepo, args: &[&str], exit: i32) -> String {
    let failed = repo.env.handoff([&["--json"], args].concat()).exit(exit);
    json(&failed.stderr)["code"].as_str().unwrap().to_owned()
}

/// Writes a program, and returns its path.
fn program(repo: &TestRepo, name: &str, script: &str) -> String {
    let path = format!("bin/{name}");
    repo.env.write(&path, &format!("#!/bin/sh\n{script}"));
    fs::set_permissions(repo.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
    repo.path(&path).to_str().unwrap().to_owned()
}

#[test]
fn a_command_becomes_a_sealed_run_of_one_item() {
    let repo = TestRepo::new();
    let script = "echo working; echo three >>a.txt; mkdir -p outputs; echo report >outputs/report";
    let output = record(&repo, &["-m", "Add a line", "--check", "grep -q three a.txt"], script);
    assert_output!("record_text", output);
    // The work tree is as before, and the run is an ordinary one.
    assert_eq!(repo.env.git(["status", "--porcelain"]).success(), "");
    let run = &newest(&repo);
    assert!(repo.is_sealed(run));
    assert_eq!(repo.item(run, "record").outputs, ["report".to_owned()].into());
    assert_eq!(json(&repo.env.handoff(["show", "--json", &format!("{run}/record")]).success())["status"], "done");
    repo.env.handoff(["verify", run]).success();
    repo.env.handoff(["apply", run, "--commit"]).success();
    assert_eq!(fs::read_to_string(repo.path("repo/a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(repo.env.handoff(["cat", &format!("{run}/record:transcript")]).success(), "working\n");
    repo.env.git(["fsck", "--strict"]).success();
    // Letters make the id, others each time.
    let letters = run.strip_prefix("record-2026-06-04-").unwrap();
    assert!(letters.len() == 5 && letters.bytes().all(|byte| byte.is_ascii_lowercase()), "{run}");
    let next = record(&repo, &["--json"], "true");
    assert_ne!(json(&next.success())["run"], **run);
}

#[test]
fn exit_code_reflects_command_and_check() {
    let repo = TestRepo::new();
    let answer = json(&record(&repo, &["--json", "--as", "fails"], "echo lost >a.txt; exit 3").exit(4).stdout);
    assert_eq!((&answer["exit"]["code"], &answer["items"][0]["status"]), (&3.into(), &"failed".into()));
    assert_eq!(answer["verify"]["intact"], true);
    // A failed check does not cost the work.
    let red = record(&repo, &["--json", "--as", "red", "--check", "exit 7"], "echo kept >a.txt");
    let second_answer = json(&red.exit(4).stdout);
    assert_eq!((&second_answer["check"]["code"], &second_answer["exit"]["code"]), (&7.into(), &0.into()));
    assert_eq!(
        (&second_answer["items"][0]["red"], &second_answer["items"][0]["status"]),
        (&true.into(), &"done".into())
    );
    assert!(repo.env.handoff(["cat", "red/record:patch"]).success().contains("+kept"));
    repo.env.handoff(["apply", "red"]).ends(1);
    repo.env.handoff(["apply", "red", "--allow-red"]).success();
}

#[test]
fn failed_record_leaves_nothing() {
    let repo = TestRepo::new();
    record(&repo, &["--as", "mine"], "true").success();
    assert_eq!(code(&repo, &["record", "--as", "mine", "--", "sh", "-c", "true"], 1), "run-exists");
    assert_eq!(code(&repo, &["record", "--as", "mine", "--", "false"], 1), "run-exists");
    assert_eq!(code(&repo, &["record", "--executor", "clade", "--", "true"], 1), "unknown-executor");
    assert_eq!(code(&repo, &["record", "--adopt", "HEAD"], 1), "bad-range");
    assert_eq!(code(&repo, &["record", "--adopt", "nowhere..HEAD"], 1), "bad-range");
    assert_eq!(code(&repo, &["record", "--adopt", "HEAD..HEAD"], 1), "bad-range");
    repo.env.write("repo/a.txt", "changed\n");
    assert_eq!(code(&repo, &["record", "--here", "--", "true"], 1), "dirty");
    assert_eq!(code(&repo, &["record"], 2), "usage");
    assert_eq!(code(&repo, &["record", "--dirty", "--", "true"], 2), "usage");
    assert_eq!(repo.env.handoff(["runs"]).success().lines().count(), 1);
    for missing in ["nosuchprogram", "/no/such/program", "./missing", "npm test"] {
        assert_eq!(code(&repo, &["record", "--", missing], 1), "no-program", "{missing}");
    }
    repo.env.shell("repo", "printf '#!/bin/sh\n' >new.sh; chmod +x new.sh").success();
    assert_eq!(code(&repo, &["record", "--", "./new.sh"], 1), "no-program");
    assert_eq!(code(&repo, &["record", "--as", "mine"], 1), "run-exists");
    assert_eq!(code(&repo, &["record", "--as", "other", "-m", "Goal"], 2), "usage");
    for (setting, value, expected) in
        [("handoff.workspace.root", "/proc/x", "no-cache"), ("handoff.signers", "/no/such/file", "io")]
    {
        let setting = format!("{setting}={value}");
        let failed = repo.env.git(["-c", &setting, "handoff", "--json", "record", "--", "true"]).exit(1);
        assert_eq!(json(&failed.stderr)["code"], expected, "{setting}");
    }
    assert_eq!(repo.env.handoff(["runs"]).success().lines().count(), 1);
}

#[test]
fn a_command_starts_where_its_user_is_and_reads_nothing() {
    let repo = TestRepo::new();
    let script = "cat; pwd | grep -q '/tree/dir$' && echo more >>b.txt";
    let args = ["record", "--as", "below", "--check", "grep -q more b.txt", "--", "sh", "-c", script];
    repo.env.handoff_in("repo/dir", args).success();
    let patch = repo.env.handoff(["cat", "below/record:patch"]).success();
    assert!(patch.starts_with("diff --git a/dir/b.txt b/dir/b.txt\n"), "{patch}");
    let manifest = json(&repo.env.handoff(["cat", "below/record:manifest"]).success());
    assert_eq!(manifest["verify"][2], "cd dir || exit\ngrep -q more b.txt");
    // Anyone can repeat that check.
    repo.env.handoff(["verify", "--recheck", "below", "--yes"]).success();
}

#[test]
fn record_uses_the_work_tree_of_the_user() {
    let repo = TestRepo::new();
    repo.env.write("repo/outputs/old", "from before\n");
    let script = "rm dir/b.txt; mkdir -p new; echo x >new/x; ln -s x new/l; echo o >outputs/now; echo four >>a.txt; \
                  git add -A new; git -c user.name=T -c user.email=t@localhost commit -qm mine new";
    let answer =
        json(&record(&repo, &["--json", "--here", "--as", "here", "--check", "test -L new/l"], script).success());
    assert_eq!(answer["verify"]["sandbox"], serde_json::json!({"none": 1}));
    let patch = repo.env.handoff(["cat", "here/record:patch"]).success();
    let changed: Vec<&str> = patch.lines().filter_map(|line| line.strip_prefix("diff --git a/")).collect();
    assert_eq!(changed, ["a.txt b/a.txt", "dir/b.txt b/dir/b.txt", "new/l b/new/l", "new/x b/new/x"]);
    assert_eq!(repo.item("here", "record").outputs, ["now".to_owned()].into());
    assert_eq!(fs::read_to_string(repo.path("repo/a.txt")).unwrap(), "one\ntwo\nfour\n");
    // Both views say that nothing confined it.
    let verified = repo.env.handoff(["verify", "here"]).success();
    insta::assert_snapshot!(find_line(&verified, "plan sha256:"), @"plan sha256:29c4…  base e01ebe4  by human:ada  sandbox none: 1 (not confined)  clock pinned");
    let stdout = repo.env.handoff(["show", "here/record"]).success();
    insta::assert_snapshot!(find_line(&stdout, "  sandbox "), @"  sandbox   none, not confined");
    // Earlier changes belong to the base.
    record(&repo, &["--here", "--dirty", "--as", "dirty"], "echo five >>a.txt").success();
    let recorded_patch = repo.env.handoff(["cat", "dirty/record:patch"]).success();
    assert!(recorded_patch.contains("\n four\n+five\n"), "{recorded_patch}");
    assert_eq!(recorded_patch.matches("diff --git").count(), 1);
    repo.env.handoff(["verify", "--recheck", "here", "--yes"]).success();
    repo.env.git(["fsck", "--strict"]).success();
}

/// Ways to change a work tree so that git, or a link, hides the change; with the paths of the
/// patch.
const HIDDEN: &[(&str, &str, &[&str])] = &[
    ("folder-to-link", "rm -r dir; ln -s ../outside dir", &["dir", "dir/b.txt"]),
    ("folder-moved", "mv dir real; ln -s real dir", &["dir", "dir/b.txt", "real/b.txt"]),
    ("file-to-folder", "rm a.txt; mkdir a.txt", &["a.txt"]),
    ("file-to-folder-with-files", "rm a.txt; mkdir a.txt; echo x >a.txt/x", &["a.txt", "a.txt/x"]),
    ("file-to-pipe", "rm a.txt; mkfifo a.txt", &["a.txt"]),
    ("file-to-repository", "rm a.txt; git init -q a.txt", &["a.txt"]),
    ("assume-unchanged", "git update-index --assume-unchanged a.txt; echo x >>a.txt", &["a.txt"]),
    ("skip-worktree", "git update-index --skip-worktree a.txt; echo x >>a.txt", &["a.txt"]),
    ("skip-worktree-deleted", "git update-index --skip-worktree a.txt; rm a.txt", &["a.txt"]),
    (
        "same-times",
        "git config core.checkStat minimal; git config core.trustctime false; touch -d 2020-01-01 a.txt; \
         git update-index --refresh; printf 'ONE\\ntwo\\n' >a.txt; touch -d 2020-01-01 a.txt",
        &["a.txt"],
    ),
    (
        "clean-filter",
        "git config filter.e.clean 'git show HEAD:a.txt'; echo 'a.txt filter=e' >.git/info/attributes; echo x >>a.txt",
        &["a.txt"],
    ),
    ("exclude", "echo new.txt >>.git/info/exclude; echo x >new.txt", &["new.txt"]),
    ("removed-from-index", "git rm -q --cached a.txt", &[]),
    ("mode", "chmod +x a.txt", &["a.txt"]),
];

#[test]
fn no_change_of_the_users_work_tree_is_hidden() {
    for (name, script, expected) in HIDDEN {
        let repo = TestRepo::new();
        repo.env.write("outside/b.txt", "SECRET\n");
        record(&repo, &["--here", "--as", "here"], script).success();
        let patch = match expected {
            [] => String::new(),
            _ => repo.env.handoff(["cat", "here/record:patch"]).success(),
        };
        let header = |line: &str| Some(line.strip_prefix("diff --git a/")?.split(" b/").next()?.to_owned());
        assert_eq!(patch.lines().filter_map(header).collect::<Vec<_>>(), *expected, "{name}\n{patch}");
        assert!(!patch.contains("SECRET"), "{name}\n{patch}");
    }
}

#[test]
fn record_counts_files_that_git_hides_as_earlier_changes() {
    let repo = TestRepo::new();
    repo.env.git(["update-index", "--skip-worktree", "a.txt"]).success();
    repo.env.write("repo/a.txt", "changed\n");
    assert_eq!(code(&repo, &["record", "--here", "--", "true"], 1), "dirty");
    // A sparse checkout leaves files out, and that is no change.
    let dirty_repo = TestRepo::new();
    dirty_repo.env.git(["sparse-checkout", "set", "--no-cone", "/a.txt"]).success();
    record(&dirty_repo, &["--here", "--as", "here"], "echo three >>a.txt").success();
    let patch = dirty_repo.env.handoff(["cat", "here/record:patch"]).success();
    assert!(patch.matches("diff --git").count() == 1 && patch.contains("+three"), "{patch}");
    // A secret is none the less one in the target of a link.
    let third_repo = TestRepo::new();
    let token = ["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    std::os::unix::fs::symlink(format!("https://x:{token}@h/"), third_repo.path("repo/link")).unwrap();
    assert_eq!(code(&third_repo, &["record", "--here", "--dirty", "--", "true"], 1), "secret-found");
}

#[test]
fn only_its_recorder_runs_a_command_in_the_users_work_tree() {
    let repo = TestRepo::new();
    let mut mine = item("a", "echo taken >a.txt");
    mine["inputs"]["here"] = true.into();
    repo.drive("r", &[mine]).ends(4);
    let reason = "it works in the work tree of the one who records it: `git handoff record --here`";
    assert_eq!(repo.item("r", "a").reason, reason);
    assert_eq!(fs::read_to_string(repo.path("repo/a.txt")).unwrap(), "one\ntwo\n");
}

#[test]
fn commits_from_before_are_claimed_and_never_recorded() {
    let repo = TestRepo::new();
    for (name, text) in [("a.txt", "one\ntwo\nthree\n"), ("c.txt", "c\n"), ("c.txt", "")] {
        if text.is_empty() {
            repo.env.git(["rm", "-q", name]).success();
        } else {
            repo.env.write(&format!("repo/{name}"), text);
            repo.env.git(["add", name]).success();
        }
        repo.env.git(["commit", "-qm", &format!("Change {name}")]).success();
    }
    let output = repo.env.handoff(["record", "--adopt", "HEAD~3..HEAD", "--as", "past", "-m", "The past"]);
    assert_output!("record_adopt", output);
    let status = repo.status("past");
    assert_eq!((&status["outcome"]["claimed"], &status["outcome"]["done"]), (&3.into(), &3.into()));
    assert!(status["items"].as_array().unwrap().iter().all(|item| item["grade"] == "claimed"));
    let ends: Vec<Value> =
        repo.entries("past").into_iter().filter(|entry| entry["kind"] == "item.reconciled").collect();
    assert!(ends.len() == 3 && ends.iter().all(|end| end["grade"] == "claimed"));
    let head = repo.env.git(["rev-parse", "HEAD"]).success();
    let last = format!("past/{}", &head[..12]);
    let answer = json(&repo.env.handoff(["show", "--json", &last]).success());
    assert_eq!((&answer["grade"], &answer["inputs"]["subject"]), (&"claimed".into(), &"Change c.txt".into()));
    assert_output!("record_adopt_snapshot", repo.env.handoff(["verify", "past", "--format", "snapshot"]));
    // The products in their order are the last commit.
    repo.env.handoff(["verify", "past", "--reproduce", "HEAD"]).success();
    repo.env.write("repo/proof.json", &repo.env.handoff(["prove", &format!("{last}:patch")]).success());
    let proof = json(&repo.env.handoff(["verify", "--json", "--proof", "proof.json"]).success());
    assert_eq!(proof["outcome"]["claimed"], 1);
}

#[test]
fn no_plan_of_a_person_names_the_executor_of_claims() {
    let repo = TestRepo::new();
    let head = repo.env.git(["rev-parse", "HEAD"]).success();
    let mut claimed = item("a", "true");
    (claimed["executor"], claimed["inputs"]["commit"]) = ("claimed".into(), head.trim().into());
    let file = repo.plan("r", &[claimed]);
    let answer = json(&repo.env.handoff(["validate", "--json", &file]).exit(1).stdout);
    assert_eq!(answer["problems"][0]["code"], "unknown-executor");
    repo.config("handoff.executor.claimed.command", "true");
    repo.env.handoff(["validate", &file]).ends(1);
}

#[test]
fn a_known_agent_gets_its_login_and_its_key() {
    if !has_bubblewrap("the login of a known agent") {
        return;
    }
    let repo = TestRepo::new();
    repo.config("handoff.sandbox", "auto");
    repo.env.write("home/.claude/.credentials.json", "login\n");
    repo.env.write("home/.other/credentials", "other\n");
    let script = "cat ~/.claude/.credentials.json; cat ~/.other/credentials; echo \"key: $ANTHROPIC_API_KEY\"; echo done >>a.txt; \
                  mkdir -p .claude; echo {} >.claude/settings.local.json\n";
    let (claude, wrapper) = (program(&repo, "claude", script), program(&repo, "wrapper", script));
    repo.env.write("repo/tools/claude", &format!("#!/bin/sh\n{script}"));
    repo.env.shell("repo", "chmod +x tools/claude; git add tools; git commit -qm Tool").success();
    let transcript_of_run = |run: &str, options: &[&str], program: &str| {
        let mut command = repo.env.command(program_path(), "repo");
        command.args(["record", "--as", run]).args(options).args(["--", program]);
        command.env("ANTHROPIC_API_KEY", "key-of-the-agent-0123456789");
        repo.env.ended(command).success();
        repo.env.handoff(["cat", &format!("{run}/record:transcript")]).success()
    };
    // A program of the repository gets nothing by its name.
    let own = transcript_of_run("own", &[], "./tools/claude");
    assert!(!own.contains("login\n") && own.contains("key: \n"), "{own}");
    // Neither by the settings of an agent of that name.
    repo.config("handoff.subagent.claude.secretEnv", "ANTHROPIC_API_KEY");
    repo.config("handoff.subagent.claude.readable", "~/.claude");
    let second_own = transcript_of_run("registered", &[], "./tools/claude");
    assert!(!second_own.contains("login\n") && second_own.contains("key: \n"), "{second_own}");
    repo.env.git(["config", "--remove-section", "handoff.subagent.claude"]).success();
    let known = transcript_of_run("known", &[], &claude);
    assert!(known.contains("login\n") && known.contains("key: [redacted"), "{known}");
    assert!(!known.contains("other\n") && !known.contains("0123456789"), "{known}");
    // Another program gets them by the agent's name alone.
    let other = transcript_of_run("other", &[], &wrapper);
    assert!(!other.contains("login\n") && other.contains("key: \n"), "{other}");
    assert!(transcript_of_run("named", &["--executor", "claude"], &wrapper).contains("login\n"));
    // Files that the agent leaves behind belong to no patch.
    let leaves = |run: &str| {
        let patch = repo.env.handoff(["cat", &format!("{run}/record:patch")]).success();
        patch.contains(".claude/settings.local.json")
    };
    assert_eq!(["known", "other", "named"].map(leaves), [false, true, false]);
}

/// Records a program that prints its variables, and returns these and what the screen says of them.
fn variables(repo: &TestRepo, agent: &str, given: &[(&str, &str)]) -> (Vec<String>, String) {
    let program = program(repo, agent, "env | sort; echo \"files: $(cat ~/.aws/credentials)\"\n");
    let mut command = repo.env.command(program_path(), "repo");
    command.args(["record", "--", &program]).envs(given.iter().copied());
    let output = repo.env.ended(command);
    let run = newest(repo);
    let names: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
    let printed = repo.env.handoff(["cat", &format!("{run}/record:transcript")]).success();
    let is_given = |line: &&str| names.contains(&line.split('=').next().unwrap()) || line.starts_with("files: ");
    let lines = printed.lines().filter(is_given).map(|line| line.split('=').next().unwrap().to_owned());
    (lines.collect(), output.stderr.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn an_agent_gets_the_keys_of_its_own_login_alone_and_the_screen_names_them() {
    let repo = TestRepo::new();
    repo.config("handoff.sandbox", "auto");
    let github = [("GH_TOKEN", "token-of-gh-0123456789"), ("GITHUB_TOKEN", "token-of-github-0123456789")];
    let own = ("COPILOT_GITHUB_TOKEN", "token-of-copilot-0123456789");
    let (given, screen) = variables(&repo, "copilot", &github);
    assert_eq!(given, ["GH_TOKEN", "files: "]);
    assert!(screen.contains("the agent gets its login: GH_TOKEN "), "{screen}");
    let (given_three, screen_three) = variables(&repo, "copilot", &[github[0], github[1], own]);
    assert_eq!(given_three, ["COPILOT_GITHUB_TOKEN", "files: "]);
    assert!(screen_three.contains("the agent gets its login: COPILOT_GITHUB_TOKEN "), "{screen_three}");
    repo.env.write("home/.copilot/config.json", r#"{"copilot_tokens": {"github.com": "t"}}"#);
    let (given_github, screen_github) = variables(&repo, "copilot", &github);
    assert_eq!(given_github, ["files: "]);
    assert!(screen_github.contains("/home/.copilot/config.json "), "{screen_github}");
    // Settings alone are no login.
    repo.env.write("home/.copilot/config.json", r#"{"theme": "dark"}"#);
    assert_eq!(variables(&repo, "copilot", &github).0, ["GH_TOKEN", "files: "]);
}

#[test]
fn the_login_of_another_service_is_given_in_the_place_of_the_agents_own() {
    let repo = TestRepo::new();
    repo.config("handoff.sandbox", "auto");
    repo.env.write("home/.claude/.credentials.json", "{}");
    repo.env.write("home/.aws/credentials", "aws");
    let bedrock = ("CLAUDE_CODE_USE_BEDROCK", "1");
    let keys = [("AWS_ACCESS_KEY_ID", "id-0123456789"), ("AWS_SECRET_ACCESS_KEY", "key-0123456789")];
    let anthropic = ("ANTHROPIC_API_KEY", "key-of-anthropic-0123456789");
    let region = ("AWS_REGION", "eu-west-1");
    let (given, screen) = variables(&repo, "claude", &[bedrock, keys[0], keys[1], anthropic, region]);
    assert_eq!(
        given,
        ["AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "CLAUDE_CODE_USE_BEDROCK", "files: "]
    );
    let warning =
        "CLAUDE_CODE_USE_BEDROCK is set: Claude Code logs in to Amazon Bedrock, not with ANTHROPIC_API_KEY or ";
    assert!(screen.contains(warning), "{screen}");
    // Without keys, the files of the service.
    let (given_bedrock, _) = variables(&repo, "claude", &[bedrock, anthropic]);
    assert_eq!(given_bedrock, ["CLAUDE_CODE_USE_BEDROCK", "files: aws"]);
    let (given_keys, second_screen) = variables(&repo, "claude", &[keys[0], keys[1], anthropic]);
    assert_eq!(given_keys, ["ANTHROPIC_API_KEY", "files: "]);
    assert!(
        second_screen.contains("ANTHROPIC_API_KEY is set: Claude Code uses it, not the login in "),
        "{second_screen}"
    );
}

/// A script in the place of an agent, which does the goal of its task.
const WORKER: &str = "task=$(cat); case \"$task\" in *'\"goal\": \"Add a line\"'*) echo three >>a.txt;; esac; \
                      case \"$task\" in *command*) echo 'its own line' >>a.txt;; esac\n";

/// Returns what `record` prints on standard output and on standard error, with a folder of programs
/// first on `PATH`.
fn record_with_programs(repo: &TestRepo, args: &[&str]) -> Output {
    let mut command = repo.env.command(program_path(), "repo");
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", repo.path("bin").display())).arg("record").args(args);
    repo.env.ended(command)
}

#[test]
fn an_agent_by_name_runs_its_own_line_with_the_goal_as_its_task() {
    let repo = TestRepo::new();
    program(&repo, "claude", WORKER);
    let output = record_with_programs(&repo, &["--agent", "claude", "--check", "grep -q three a.txt", "Add a line"]);
    assert_output!("record_agent", output);
    let item = json(&repo.env.handoff(["show", "--json", "@/record"]).success());
    let line = &git_handoff::repository::config::PRESETS["claude"].command;
    assert_eq!(item["manifest"]["argv"], serde_json::json!(["sh", "-c", line]));
    assert_eq!((&item["inputs"]["goal"], &item["inputs"]["agent"]), (&"Add a line".into(), &"claude".into()));
    let patch = repo.env.handoff(["cat", "@/record:patch"]).success();
    assert!(patch.contains("+three") && !patch.contains("its own line"), "{patch}");
    // A registered subagent has its own line.
    repo.config("handoff.subagent.helper.command", "cat >task.json");
    record_with_programs(&repo, &["--as", "notes", "--agent", "helper", "Write it down"]).success();
    assert_eq!(repo.status("notes")["sealed"], true);
    let recorded_patch = repo.env.handoff(["cat", "@/record:patch"]).success();
    assert!(recorded_patch.contains("+  \"goal\": \"Write it down\","), "{recorded_patch}");
    // Its line takes the place of that of a known agent.
    repo.config("handoff.subagent.claude.command", "echo other >>a.txt");
    record_with_programs(&repo, &["--agent", "claude", "Add a line"]).success();
    assert!(repo.env.handoff(["cat", "@/record:patch"]).success().contains("+other"));
}

#[test]
fn an_unknown_agent_is_refused_with_the_nearest_one() {
    let repo = TestRepo::new();
    repo.config("handoff.subagent.reviewer.timeout", "10");
    for (name, hint) in [("clade", "did you mean \"claude\"?"), ("reviewr", "did you mean \"reviewer\"?")] {
        let failed = repo.env.handoff(["record", "--agent", name, "Add a line"]).exit(1);
        let message = format!("error: {name:?} is no known agent, and no subagent is registered here under that name");
        assert_eq!(failed.stderr, format!("{message}\nhint: {hint}\n"));
    }
    let failed = repo.env.handoff(["record", "--agent", "reviewer", "Add a line"]).exit(1);
    assert!(failed.stderr.starts_with("error: the subagent \"reviewer\" is registered here without a command\n"));
    for args in [&["--agent", "claude"][..], &["Add a line"], &["--agent", "claude", "a", "--", "true"]] {
        assert_eq!(code(&repo, &[&["record"], args].concat(), 2), "usage", "{args:?}");
    }
    assert_eq!(repo.env.handoff(["runs"]).success(), "");
}

#[test]
fn record_hints_at_missing_agent_options() {
    let repo = TestRepo::new();
    program(&repo, "codex", "true\n");
    let output = record_with_programs(&repo, &["--", "codex", "exec", "resume", "Add a line"]);
    assert_output!(output, @"
    ─ nothing changed
    agent: codex
    proof ✓ intact, 4 entries, your key: git handoff verify record-2026-06-04-xoukg
    ------- stderr -------
    warning: codex: it can change nothing without `--dangerously-bypass-approvals-and-sandbox`; no tokens without `--json`; `resume` continues nothing in a new worktree
    ▶ record  attempt 1
    hint: git handoff record --agent codex TASK   # runs it with all that it needs
    ");
    let whole = ["--", "codex", "exec", "--json", "--sandbox", "danger-full-access", "Add a line"];
    assert!(!record_with_programs(&repo, &whole).stderr.contains("warning"));
}

#[test]
fn the_screen_shows_the_first_failing_assertion() {
    let repo = TestRepo::new();
    let check = "echo '    def test_x():'; echo \"E       AssertionError: assert 'Hello' == 'Hallo'\"; \
                 echo '1 failed, 13 passed in 0.03s'; echo later; exit 1";
    let red =
        record(&repo, &["--check", check, "-m", "Greet\n\nin Dutch"], "echo three >>a.txt; echo x >c; rm dir/b.txt");
    assert_output!(red, @"
    ! check failed: 1 of 14 tests
        E       AssertionError: assert 'Hello' == 'Hallo'
    check: nothing protected
    3 files changed, +2 −1: a.txt, c, dir/b.txt
    goal: Greet …
    proof ✓ intact, 4 entries, your key: git handoff verify record-2026-06-04-vmrdv
    ------- stderr -------
    ▶ record  attempt 1
        def test_x():
    E       AssertionError: assert 'Hello' == 'Hallo'
    1 failed, 13 passed in 0.03s
    later
    hint: git handoff apply record-2026-06-04-vmrdv --allow-red   # to take it
    [exit status: 4]
    ");
    // Another output is shown from its end.
    let second_red = record(&repo, &["--check", "seq 9; exit 7"], "echo three >>a.txt");
    let lines: Vec<&str> = second_red.stdout.lines().collect();
    assert_eq!(lines[..2], ["! check failed: exit 7: seq 9; exit 7", "  the end of its output:"]);
    assert_eq!(lines[2..7], ["    5", "    6", "    7", "    8", "    9"]);
}

#[test]
fn no_line_of_the_screen_is_wider_than_80_columns() {
    let repo = TestRepo::new();
    let long = "x".repeat(90);
    let script =
        format!("for i in 1 2 3 4 5 6 7 8 9; do echo >{}$i; done; mkdir -p outputs; echo >outputs/o", "y".repeat(20));
    let check = format!("echo {long}; false");
    let stdout = record(&repo, &["-m", &long, "--check", &check], &script).exit(4).stdout;
    assert!(stdout.lines().count() == 7 && stdout.lines().all(|line| line.chars().count() <= 80), "{stdout}");
    let passed = record(&repo, &["--check", &format!("test -n {long}")], "echo >z").success();
    assert!(passed.lines().all(|line| line.chars().count() <= 80) && passed.contains("… (0 ms)\n"), "{passed}");
}

#[test]
fn the_goal_is_in_lists_and_in_the_commit() {
    let repo = TestRepo::new();
    record(&repo, &["-m", "Add a line\n\nIt is the third."], "echo three >>a.txt").success();
    assert!(repo.env.handoff(["runs"]).success().ends_with("  1 done  Add a line\n"));
    assert!(repo.env.handoff(["show", "@"]).success().contains("\ngoal       Add a line"));
    let runs = json(&repo.env.handoff(["runs", "--json"]).success());
    assert_eq!(runs["runs"][0]["goal"], "Add a line\n\nIt is the third.");
    repo.env.handoff(["apply", "@", "--commit"]).success();
    let message = repo.env.git(["log", "-1", "--format=%B"]).success();
    let beginning = format!("Add a line\n\nIt is the third.\n\nHandoff-Run: {}\n", newest(&repo));
    assert!(message.starts_with(&beginning), "{message}");
    // A goal that would read as a trailer of ours names no commit.
    record(&repo, &["-m", "Handoff-Item: x"], "echo four >>a.txt").success();
    repo.env.handoff(["apply", "@", "--commit"]).success();
    let subject = repo.env.git(["log", "-1", "--format=%s"]).success();
    assert_eq!(subject, format!("record: apply the patch of {}\n", newest(&repo)));
}

#[test]
fn the_newest_run_has_a_name_in_every_command() {
    let repo = TestRepo::new();
    repo.env.handoff(["show", "@"]).ends(1);
    repo.drive("a", &[item("work", "echo old >a.txt")]).success();
    repo.drive("z", &[item("work", "echo new >a.txt; echo out >outputs/o")]).success();
    let file = repo.plan("b", &[item("work", "echo newest >a.txt; echo out >outputs/o")]);
    repo.env.handoff(["run", &file]).success();
    for args in [
        &["show", "@"][..],
        &["show", "@/work"],
        &["status", "@"],
        &["log", "@"],
        &["graph", "@"],
        &["verify", "@"],
        &["verify", "--recheck", "--yes", "@"],
        &["lineage", "@/work:outputs/o"],
        &["export", "@", "--format", "in-toto"],
        &["report", "@", "--markdown"],
        &["prove", "@/work:patch"],
        &["apply", "@", "--dry-run"],
        &["bundle", "@", "--output", "b.bundle"],
        &["archive", "--dry-run", "@"],
        &["run", "@"],
    ] {
        let found = repo.env.handoff(args);
        let all = format!("{}{}", found.stdout, found.stderr);
        let recheck = args.contains(&"--recheck");
        assert!(found.status == Some(0) || recheck, "{args:?}: {all}");
        assert!(!all.contains("there is no run"), "{args:?}: {all}");
    }
    assert_eq!(repo.env.handoff(["cat", "@/work:outputs/o"]).success(), "out\n");
    assert_eq!(json(&repo.env.handoff(["cat", "@:plan.json"]).success())["id"], "b");
    assert_eq!(json(&repo.env.handoff(["status", "--json", "@"]).success())["run"], "b");
    let offered = repo.env.handoff(["complete", "--", "show", "@"]).success();
    assert_eq!(offered, "@\n");
    let completions = repo.env.handoff(["complete", "--", "show", "@/"]).success();
    assert_eq!(completions, "@/work\n");
    // No run can have that name.
    repo.env.handoff(["run", "--id", "@", &file]).ends(1);
}

#[test]
fn a_claimed_item_is_nowhere_just_done() {
    let repo = TestRepo::new();
    repo.env.write("repo/a.txt", "one\ntwo\nthree\n");
    repo.env.git(["commit", "-qam", "By hand"]).success();
    let stdout = repo.env.handoff(["record", "--adopt", "HEAD~1..HEAD", "--as", "past"]).success();
    assert!(stdout.starts_with("─ claimed, made before and not checked\n1 file changed, +1 −0: a.txt\n"), "{stdout}");
    let head = repo.env.git(["rev-parse", "--short=12", "HEAD"]).success();
    let item = format!("past/{}", head.trim());
    let stdout_of = |args: &[&str]| repo.env.handoff(args).success();
    assert!(stdout_of(&["runs"]).contains("1 done, 1 claimed\n"));
    assert!(stdout_of(&["status", "past"]).contains("1 of 1 done, 1 claimed, sealed"));
    let overview = "1 run sealed, done and green by what they record, 1 with items that are only claimed\n";
    assert_eq!(stdout_of(&[]), overview);
    let commits = stdout_of(&["verify", "--commits", "HEAD~1..HEAD"]);
    assert!(
        commits.ends_with(&format!("  product  {item}, claimed\nHEAD~1..HEAD: 1 of 1 commits pass, 1 claimed\n")),
        "{commits}"
    );
    let answer = json(&stdout_of(&["verify", "--json", "--commits", "HEAD~1..HEAD"]));
    assert_eq!(answer["commits"][0]["items"][0]["made"]["grade"], "claimed");
    assert!(stdout_of(&["whence", "HEAD"]).contains(", done, claimed "));
    let markdown = stdout_of(&["report", "--markdown", "past"]);
    assert!(markdown.contains(" | done, claimed | ") && markdown.contains("1 claimed"), "{markdown}");
    let runs = json(&stdout_of(&["runs", "--json"]));
    assert_eq!(runs["runs"][0]["claimed"], 1);
    assert_eq!(json(&stdout_of(&["--json"]))["claimed"], 1);
}
