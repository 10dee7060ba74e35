//! The same handing over by each way that git has.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{RUN, RUN_REF, clone, json, marks, pushed, refs, server, shared};
use crate::common::{Environment, Output, assert_output};

/// Pushes from `repo`, fetches into `clone` by the same URL, verifies there.
fn round_trip(env: &Environment, url: &str) {
    env.git(["remote", "set-url", "origin", url]).success();
    let pushed = env.handoff(["push", "--all", "--json"]).exit(0);
    let moved = json(&pushed);
    assert_eq!(moved["schema"], "git-handoff.push/1");
    let kinds: Vec<_> = moved["refs"].as_array().unwrap().iter().map(|r| (&r["kind"], &r["status"])).collect();
    assert_eq!(format!("{kinds:?}"), r#"[(String("run"), String("new")), (String("log"), String("new"))]"#);
    clone(env, "clone");
    env.git_in("clone", ["remote", "set-url", "origin", url]).success();
    let fetched = json(&env.handoff_in("clone", ["fetch", "--json"]).exit(0));
    assert_eq!(fetched["schema"], "git-handoff.fetch/1");
    assert_eq!(fetched["refs"][0]["ref"], "refs/handoff/remotes/origin/runs/handoff-dag-1");
    assert_eq!(marks(&env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).exit(0)), "✓✓─✓✓✓✓✓");
    assert_eq!(env.handoff_in("clone", ["fetch"]).exit(0).stderr, "everything is here already\n");
    assert_eq!(env.handoff(["push", "--all"]).exit(0).stderr, "the remote has everything already\n");
}

#[test]
fn by_path() {
    let env = shared();
    round_trip(&env, "../hub");
}

#[test]
fn by_a_relative_path_from_any_folder() {
    let env = shared();
    env.git(["remote", "set-url", "origin", "../hub"]).success();
    env.write("repo/deep/down/file", "");
    insta::assert_snapshot!(env.handoff_in("repo/deep/down", ["push", "--all"]).exit(0).stdout, @"
    new  run  handoff-dag-1
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.e54ff5b564bd
    ");
    env.handoff_in("repo/deep/down", ["fetch", "../../../hub"]).ends(0);
    clone(&env, "clone");
    env.git_in("clone", ["remote", "set-url", "origin", "../hub"]).success();
    env.write("clone/deep/down/file", "");
    insta::assert_snapshot!(env.handoff_in("clone/deep/down", ["fetch"]).exit(0).stdout, @"
    new  run  handoff-dag-1
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.e54ff5b564bd
    ");
    env.git_in(".", ["clone", "--quiet", "--bare", "hub", "bare"]).success();
    env.git_in("bare", ["remote", "set-url", "origin", "../hub"]).success();
    insta::assert_snapshot!(env.handoff_in("bare/objects", ["fetch"]).exit(0).stdout, @"
    new  run  handoff-dag-1
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.e54ff5b564bd
    ");
}

#[test]
fn by_file_url() {
    let env = shared();
    round_trip(&env, &format!("file://{}/hub", env.path().display()));
}

#[test]
fn by_smart_http() {
    let env = shared();
    let url = server::serve(env.path());
    round_trip(&env, &format!("{url}/hub"));
}

#[test]
fn by_ssh() {
    let env = shared();
    // Takes the place of ssh: drops options and the host, and runs the command here.
    env.write("home/ssh", "#!/bin/sh\nwhile [ \"$1\" != host ]; do shift; done\nshift\nexec sh -c \"$*\"\n");
    fs::set_permissions(env.path().join("home/ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    env.git(["config", "--global", "core.sshCommand", &env.path().join("home/ssh").to_string_lossy()]).success();
    env.git(["config", "--global", "ssh.variant", "simple"]).success();
    round_trip(&env, &format!("ssh://host{}/hub", env.path().display()));
}

#[test]
fn sha256_repositories_share_as_well() {
    let env = Environment::example_with("handoff-dag", &["--object-format=sha256"]);
    env.handoff(["run", "plan.json"]).success();
    env.git_in(".", ["init", "--quiet", "--bare", "--object-format=sha256", "hub"]).success();
    env.git(["remote", "add", "origin", "../hub"]).success();
    env.git(["push", "--quiet", "origin", "main"]).success();
    round_trip(&env, "../hub");
    env.handoff(["bundle", "--all", "--output", "../run.bundle"]).exit(0).success();
    assert_eq!(marks(&env.handoff_in("home", ["verify", "--bundle", "../run.bundle"]).exit(0)), "✓✓✓✓✓✓✓✓");
}

#[test]
fn fetch_reports_progress() {
    let env = shared();
    assert_output!(env.handoff(["push", "--all", "--dry-run"]), @"
    new  run  handoff-dag-1
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.e54ff5b564bd
    ------- stderr -------
    nothing was pushed: --dry-run
    ");
    assert_eq!(refs(&env, "hub"), "");
    assert_output!(env.handoff(["push", "--all"]), @"
    new  run  handoff-dag-1
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.e54ff5b564bd
    ");
    clone(&env, "clone");
    assert_output!(env.handoff_in("clone", ["fetch"]), @"
    new  run  handoff-dag-1
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.e54ff5b564bd
    ------- stderr -------
    hint: git handoff verify origin/handoff-dag-1
    ");
    assert_output!("fetch_verify", env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]));
}

#[test]
fn a_run_is_handed_on_as_it_grows() {
    let env = shared();
    env.git(["config", "handoff.subagent.code-edit.command", "exit 7"]).success();
    let plan = fs::read_to_string(env.repo().join("plan.json")).unwrap();
    env.write("repo/second.json", &plan.replace(RUN, "second"));
    let _ = env.handoff(["run", "second.json"]).exit(4);
    env.handoff(["push", "origin", "second"]).success();
    assert!(!refs(&env, "hub").contains(RUN_REF), "only the named run goes");
    clone(&env, "clone");
    env.handoff_in("clone", ["fetch", "origin", "second"]).success();
    env.handoff(["close", "second"]).success();
    env.handoff(["push", "--all"]).success();
    let fetched = json(&env.handoff_in("clone", ["fetch", "--json"]).exit(0));
    let statuses: Vec<_> = fetched["refs"].as_array().unwrap().iter().map(|r| r["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["new", "updated", "updated"]);
    env.handoff_in("clone", ["verify", "origin/second"]).ends(4);
}

#[test]
fn only_the_namespace_of_the_remote_is_written() {
    let env = pushed();
    let outside = |environment: &Environment| {
        let all = environment.git_in("clone", ["for-each-ref"]).success();
        let other: Vec<_> = all.lines().filter(|line| !line.contains("refs/handoff/remotes/origin/")).collect();
        (
            other.join("\n"),
            environment.path().join("clone/.git/FETCH_HEAD").exists(),
            environment.git_in("clone", ["status"]).success(),
        )
    };
    env.git_in("hub", ["tag", "v1", "main"]).success();
    let before = outside(&env);
    env.handoff_in("clone", ["fetch"]).success();
    assert_eq!(outside(&env), before);
}

#[test]
fn a_url_gets_a_name_of_its_own() {
    let env = pushed();
    let fetched = json(&env.handoff_in("clone", ["fetch", "../hub", "--json"]).exit(0));
    let name = fetched["remote"].as_str().unwrap().to_owned();
    assert!(name.starts_with("hub-"), "{name}");
    env.handoff_in("clone", ["verify", &format!("{name}/{RUN}")]).success();
}

#[test]
fn transcripts_are_pushed_only_with_an_option() {
    let env = pushed();
    assert!(!refs(&env, "hub").contains("transcripts"));
    env.handoff_in("clone", ["fetch"]).success();
    let what = "origin/handoff-dag-1/edit-a:transcript";
    assert_output!(env.handoff_in("clone", ["cat", what]), @r#"
    ------- stderr -------
    warning: the run "handoff-dag-1" is signed with SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg, not known to you; to make a key known, add the line that `git handoff key` prints for its owner to the file of handoff.signers
    error: the transcript of "edit-a" is not here; only its hash is recorded
    hint: git handoff fetch origin --transcripts
    [exit status: 1]
    "#);
    env.handoff(["push", "--all", "--transcripts"]).success();
    assert!(refs(&env, "hub").contains("refs/handoff/transcripts/handoff-dag-1"));
    env.handoff_in("clone", ["fetch"]).success();
    assert!(!refs(&env, "clone").contains("transcripts"));
    env.handoff_in("clone", ["fetch", "--transcripts"]).success();
    let own: Output = env.handoff(["cat", "handoff-dag-1/edit-a:transcript"]).exit(0);
    assert_eq!(env.handoff_in("clone", ["cat", what]).exit(0).raw, own.raw);
}

#[test]
fn a_repository_without_objects_of_its_own_takes_runs_in() {
    let env = pushed();
    env.git_in(".", ["init", "--quiet", "fresh"]).success();
    let name =
        json(&env.handoff_in("fresh", ["fetch", "../hub", "--json"]).exit(0))["remote"].as_str().unwrap().to_owned();
    env.handoff_in("fresh", ["verify", &format!("{name}/{RUN}")]).success();
    env.git_in("fresh", ["fsck", "--strict"]).success();
}

#[test]
fn a_mirrored_push_deletes_what_others_shared() {
    // The hazard that docs/how-to/protect-shared-runs.md warns of, and the remedy that it has.
    let env = pushed();
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to/protect-shared-runs.md")).unwrap();
    let hook = text.split("```sh\n").find(|block| block.starts_with("#!/bin/sh")).unwrap();
    env.write("hub/hooks/update", hook.split("```").next().unwrap());
    fs::set_permissions(env.path().join("hub/hooks/update"), fs::Permissions::from_mode(0o755)).unwrap();
    let before = refs(&env, "hub");
    assert!(env.git_in("clone", ["push", "--mirror", "origin"]).stderr.contains("runs and logs only grow here"));
    assert_eq!(refs(&env, "hub"), before);
    assert_ne!(env.git(["push", "--force", "origin", &format!("{RUN_REF}^:{RUN_REF}")]).status, Some(0));
    // Honest transports work.
    env.git(["config", "handoff.subagent.code-edit.command", "exit 7"]).success();
    env.write("repo/second.json", &fs::read_to_string(env.repo().join("plan.json")).unwrap().replace(RUN, "second"));
    let _ = env.handoff(["run", "second.json"]).exit(4);
    env.handoff(["push", "--all"]).success();
    env.handoff(["close", "second"]).success();
    env.handoff(["push", "--all"]).success();
    fs::remove_file(env.path().join("hub/hooks/update")).unwrap();
    let _ = env.git_in("clone", ["push", "--quiet", "--mirror", "origin"]);
    assert_eq!(refs(&env, "hub"), "", "without it, all is gone");
}

#[test]
fn the_users_own_push_and_fetch_do_not_notice() {
    let env = pushed();
    let dry = |dir: &str, args: &[&str]| {
        let output = env.git_in(dir, args);
        assert_eq!(output.status, Some(0), "{output}");
        format!("{}{}", output.stdout, output.stderr)
    };
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Mine"]).success();
    assert!(!dry("repo", &["push", "--dry-run", "--porcelain"]).contains("handoff/"));
    let hook = "#!/bin/sh\necho a hook ran >&2\nexit 1\n";
    env.write("repo/.git/hooks/pre-push", hook);
    fs::set_permissions(env.repo().join(".git/hooks/pre-push"), fs::Permissions::from_mode(0o755)).unwrap();
    env.git(["update-ref", "-d", RUN_REF]).success();
    insta::assert_snapshot!(env.handoff(["push", "--all"]).exit(0).stderr, @"there are no runs or threads here");
    env.handoff_in("clone", ["fetch"]).success();
    env.git_in("clone", ["fetch", "--quiet", "--prune"]).success();
    assert!(refs(&env, "clone").contains("remotes/origin/runs"), "a prune of branches leaves runs alone");
}
