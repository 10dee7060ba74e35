//! Leftovers of crashes, people and settings: the doctor's findings, and cleaning.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::clone::TestClone;
use crate::common::report::find_line;

const EDIT: (&str, &str, Option<&str>) = ("edit", "echo said; sed -i s/two/TWO/ main.txt", None);

/// Returns the codes of what is found, with whether each was mended.
fn findings(clone: &TestClone, arguments: &[&str]) -> (i32, Vec<(String, bool)>) {
    let (code, answer) = clone.answer(&[&["doctor"], arguments].concat());
    assert_eq!(answer["schema"], "git-handoff.doctor/1");
    let of = |finding: &Value| (finding["code"].as_str().unwrap().to_owned(), finding["fixed"].as_bool().unwrap());
    (code, answer["findings"].as_array().unwrap().iter().map(of).collect())
}

fn found(clone: &TestClone) -> (i32, Vec<String>) {
    let (code, findings) = findings(clone, &[]);
    (code, findings.into_iter().map(|(finding_code, _)| finding_code).collect())
}

#[test]
fn a_healthy_repository_has_nothing_to_complain_about() {
    let clone = TestClone::new();
    assert_eq!(found(&clone), (0, vec![]));
    assert!(!clone.root().join(".git/handoff").exists(), "looking makes no key");
    clone.done("r", &[EDIT]);
    assert_eq!(found(&clone), (0, vec![]));
}

#[test]
fn doctor_repairs_a_crash_after_submit_or_seal() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    clone.git(&["update-ref", "-d", "refs/handoff/bases/r"]);
    let log = clone.git(&["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]);
    clone.git(&["update-ref", log.trim(), &format!("{}~1", log.trim())]);
    assert_eq!(found(&clone), (3, vec!["base-missing".into(), "seal-not-logged".into()]));
    let mended = vec![("base-missing".into(), true), ("seal-not-logged".into(), true)];
    assert_eq!(findings(&clone, &["--fix"]), (0, mended));
    assert_eq!(found(&clone), (0, vec![]));
    clone.git(&["update-ref", "-d", log.trim()]);
    assert_eq!(findings(&clone, &["--fix"]), (0, vec![("log-missing".into(), true)]));
    let (code, _, stderr) = clone.handoff(&["verify", "r"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_log_is_not_made_to_witness_a_run_that_was_tampered_with() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    let log = clone.git(&["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]);
    clone.git(&["update-ref", "-d", log.trim()]);
    let tree = clone.git(&["rev-parse", "main^{tree}"]);
    // The seal's entry over another tree: still readable, no longer what was signed.
    let raw = clone.git(&["cat-file", "commit", "refs/handoff/runs/r"]);
    let forged = raw.replacen(raw.lines().next().unwrap(), &format!("tree {}", tree.trim()), 1);
    clone.write("forged", &forged);
    let second_forged = clone.git(&["hash-object", "-w", "-t", "commit", "forged"]);
    clone.git(&["update-ref", "refs/handoff/runs/r", second_forged.trim()]);
    let (code, findings) = findings(&clone, &["--fix"]);
    assert_eq!((code, findings.iter().any(|(_, fixed)| *fixed)), (3, false), "{findings:?}");
    assert_eq!(clone.git(&["for-each-ref", "refs/handoff/logs"]), "");
}

#[test]
fn stale_locks_open_keys_and_replace_refs_are_found() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    clone.write(".git/refs/handoff/runs/r.lock", "");
    let key = clone.root().join(".git/handoff/signing_key");
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    clone.git(&["config", "gc.pruneExpire", "now"]);
    let (seal, first) = (clone.git(&["rev-parse", "refs/handoff/runs/r"]), clone.git(&["rev-parse", "main"]));
    clone.git(&["replace", seal.trim(), first.trim()]);
    let (code, codes) = found(&clone);
    assert_eq!((code, codes), (3, ["key-readable", "prune-now", "replaced", "stale-lock"].map(str::to_owned).to_vec()));
    let (second_code, mended) = findings(&clone, &["--fix"]);
    let fixed: Vec<_> =
        mended.iter().filter(|(_, fixed)| *fixed).map(|(finding_code, _)| finding_code.as_str()).collect();
    assert_eq!((second_code, fixed), (3, vec!["key-readable", "stale-lock"]));
    clone.git(&["replace", "-d", seal.trim()]);
    clone.git(&["config", "gc.pruneExpire", "2.weeks.ago"]);
    assert_eq!(found(&clone), (0, vec![]));
}

#[test]
fn doctor_lists_runs_that_wait_with_a_command() {
    let clone = TestClone::new();
    let plan = clone.plan("r", &[("fail", "exit 1", None)]);
    clone.handoff(&["run", &plan]);
    let (code, answer) = clone.answer(&["doctor"]);
    assert_eq!((code, &answer["findings"][0]["hint"]), (3, &json!("git handoff close r")));
    clone.handoff(&["close", "r"]);
    assert_eq!(found(&clone), (0, vec![]));
    clone.git(&["update-ref", "refs/handoff/runs/x", "HEAD"]);
    assert_eq!(found(&clone), (3, vec!["unreadable-run".into()]));
}

/// Keeps the worktree of a failed attempt, as by the setting.
fn with_leftover(clone: &TestClone) -> PathBuf {
    clone.git(&["config", "handoff.workspace.keep", "true"]);
    let plan = clone.plan("r", &[("fail", "echo said; echo work > work.txt; exit 1", None)]);
    clone.handoff(&["run", &plan, "--close"]);
    let (code, answer) = clone.answer(&["clean"]);
    assert_eq!(code, 0);
    assert_eq!(answer["schema"], "git-handoff.clean/1");
    assert_eq!((&answer["dryRun"], &answer["pieces"][0]["removed"]), (&json!(true), &json!(false)));
    PathBuf::from(answer["pieces"][0]["path"].as_str().unwrap())
}

#[test]
fn worktrees_are_listed_first_then_saved_and_removed() {
    let clone = TestClone::new();
    let path = with_leftover(&clone);
    assert_eq!(found(&clone), (3, vec!["worktrees-left".into()]));
    let (_, stdout, stderr) = clone.handoff(&["clean", "--force", "--dry-run"]);
    assert!(stdout.starts_with("would remove worktree "), "{stdout}{stderr}");
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: the same command with --force");
    assert!(path.exists());
    let (code, answer) = clone.answer(&["clean", "-f"]);
    assert_eq!((code, &answer["pieces"][0]["removed"]), (0, &json!(true)), "{answer}");
    assert!(answer["bytes"].as_u64().unwrap() > 0);
    assert!(!path.exists());
    assert!(clone.git(&["ls-tree", "-r", "--name-only", "refs/handoff/salvage/r"]).contains("work.txt"));
    assert_eq!(found(&clone), (0, vec![]));
}

#[test]
fn clean_tells_what_stays_and_why() {
    let clone = TestClone::new();
    let path = with_leftover(&clone);
    let runs = path.parent().unwrap();
    let root = runs.parent().unwrap();
    let failed_run = runs.join("fail.7-unsaved");
    fs::create_dir_all(failed_run.join("tree")).unwrap();
    fs::create_dir_all(root.join("other/a.1/tree")).unwrap();
    fs::create_dir_all(root.join("@pool/dead/0/tree")).unwrap();
    fs::create_dir_all(root.join("@pool/alive/0/tree")).unwrap();
    let lock = fs::File::open(root.join("@pool/alive")).unwrap();
    lock.try_lock().unwrap();
    let (code, answer) = clone.answer(&["clean"]);
    let stays = |report: &serde_json::Value| -> Vec<(String, String)> {
        let stays = report["stays"].as_array().unwrap().iter();
        let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        stays.map(|stay| (word(&stay["kind"]), word(&stay["path"]).rsplit('/').next().unwrap().to_owned())).collect()
    };
    let expected = [("pool", "alive"), ("unknown", "a.1"), ("unsaved", "fail.7-unsaved")]
        .map(|(kind, name)| (kind.to_owned(), name.to_owned()));
    assert_eq!((code, stays(&answer)), (0, expected.to_vec()), "{answer}");
    let kinds = answer["pieces"].as_array().unwrap().iter().map(|piece| piece["kind"].as_str().unwrap());
    assert_eq!(kinds.collect::<Vec<_>>(), ["worktree", "worktree", "pool"]);
    assert_eq!(answer["worktrees"]["cap"], 10_737_418_240_u64);
    assert!(answer["worktrees"]["bytes"].as_u64().unwrap() > 0);
    let (_, stdout, _) = clone.handoff(&["clean"]);
    let reason = "it holds work that could not be saved; --discard --force removes it";
    assert!(stdout.lines().any(|line| line.ends_with(&format!("/r/fail.7-unsaved (0 B): {reason}"))), "{stdout}");
    let (clean_code, clean_answer) = clone.answer(&["clean", "--force"]);
    assert_eq!((clean_code, stays(&clean_answer)), (0, expected.to_vec()), "{clean_answer}");
    assert!(root.join("@pool/alive").exists() && !root.join("@pool/dead").exists() && !path.exists());
    // Closing alone would not do: a program that another thread starts may still have the file.
    lock.unlock().unwrap();
    let (second_code, second_answer) = clone.answer(&["clean", "--force", "--discard"]);
    assert_eq!((second_code, stays(&second_answer)), (0, vec![expected[1].clone()]), "{second_answer}");
    assert!(!root.join("@pool/alive").exists() && !failed_run.exists());
}

#[test]
fn clean_deletes_transcripts_and_salvage_only_with_options() {
    let clone = TestClone::new();
    with_leftover(&clone);
    clone.handoff(&["clean", "-f"]);
    let refs =
        || clone.git(&["for-each-ref", "--format=%(refname)", "refs/handoff/transcripts", "refs/handoff/salvage"]);
    assert_eq!(refs(), "refs/handoff/salvage/r\nrefs/handoff/transcripts/r\n");
    let (code, answer) = clone.answer(&["clean", "r", "-f", "--transcripts", "--salvage"]);
    assert_eq!(code, 0, "{answer}");
    assert_eq!(refs(), "");
    let (verify_code, _, stderr) = clone.handoff(&["verify", "--allow-partial", "r"]);
    assert_eq!(verify_code, 0, "{stderr}");
}

#[test]
fn a_run_that_is_not_sealed_keeps_everything() {
    let clone = TestClone::new();
    let plan = clone.plan("r", &[("fail", "echo said; exit 1", None)]);
    clone.handoff(&["run", &plan]);
    clone.handoff(&["clean", "-f", "--transcripts", "--salvage"]);
    assert!(clone.git(&["for-each-ref", "refs/handoff/transcripts"]).contains("refs/handoff/transcripts/r"));
}

#[test]
fn doctor_reports_a_run_of_a_killed_driver() {
    let clone = TestClone::new();
    let plan =
        clone.plan("r", &[("slow", "touch \"$HOME/started\"; test -e \"$HOME/go\" || sleep 60; echo x > x", None)]);
    let mut driver = clone.start(&["run", &plan]);
    while !clone.home().join("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(found(&clone), (0, vec![]), "a run that is being driven is fine");
    let (_, answer) = clone.answer(&["clean", "-f"]);
    assert_eq!(answer["pieces"], json!([]), "a run that is being driven is left alone");
    driver.kill().unwrap();
    driver.wait().unwrap();
    assert_eq!(found(&clone), (3, vec!["stranded".into()]));
    std::fs::write(clone.home().join("go"), "").unwrap();
    let (code, _, stderr) = clone.handoff(&["run", "r"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(found(&clone), (0, vec![]));
}

/// Sets a file's modification time some minutes back.
fn age(path: &Path, minutes: u64) {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(minutes * 60);
    std::fs::File::open(path).unwrap().set_modified(then).unwrap();
}

#[test]
fn doctor_removes_old_leftovers_of_killed_processes() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    clone.git(&["pack-refs", "--all"]);
    let locks = ["packed-refs.lock", "packed-refs.new", "refs/heads/main.lock", "refs/handoff/remotes/o/runs/x.lock"];
    let files = ["objects/pack/tmp_pack_x", "objects/.tmpAbC", "objects/ab/tmp_obj_x", "objects/pack/.tmp-handoff-y"];
    let marks = ["handoff/verified/.tmpAbC", "handoff/remotes/.tmpAbC", "handoff/checks/r/.tmpAbC"];
    let git = clone.root().join(".git");
    let mut paths: Vec<PathBuf> = locks.iter().chain(&files).chain(&marks).map(|name| git.join(name)).collect();
    for path in &paths {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    paths.push(git.join("objects/tmp_objdir-handoff-x"));
    std::fs::create_dir_all(git.join("objects/tmp_objdir-handoff-x/pack")).unwrap();
    // A push from here and from another work tree.
    clone.git(&["worktree", "add", "-q", "--detach", "../linked"]);
    for push in ["refs/worktree/handoff-push-x", "worktrees/linked/refs/worktree/handoff-push-x"] {
        std::fs::create_dir_all(git.join(push).join("1/handoff/runs")).unwrap();
        std::fs::write(git.join(push).join("1/handoff/runs/r"), clone.git(&["rev-parse", "refs/handoff/runs/r"]))
            .unwrap();
        paths.push(git.join(push));
    }
    // Young ones are named, and stay.
    paths.iter().for_each(|path| age(path, 30));
    let (code, young) = findings(&clone, &["--fix"]);
    assert_eq!((code, young.len()), (0, paths.len()), "{young:?}");
    assert!(paths.iter().all(|path| path.exists()) && young.iter().all(|(_, fixed)| !fixed));
    // An open file stays, however old.
    paths.iter().for_each(|path| age(path, 61));
    let open = std::fs::File::open(&paths[4]).unwrap();
    let (old_code, old) = found(&clone);
    assert_eq!((old_code, old.len()), (3, paths.len() - 1), "{old:?}");
    let (fixed_code, fixed) = findings(&clone, &["--fix"]);
    assert_eq!((fixed_code, fixed.len()), (0, paths.len() - 1), "{fixed:?}");
    assert!(fixed.iter().all(|(_, fixed)| *fixed));
    assert_eq!(paths.iter().filter(|path| path.exists()).collect::<Vec<_>>(), [&paths[4]]);
    drop(open);
    assert_eq!(findings(&clone, &["--fix"]), (0, vec![("temporary-left".into(), true)]));
    assert_eq!(found(&clone), (0, vec![]));
}

#[test]
fn a_stale_lock_on_packed_refs_stops_only_changes_of_that_file() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    clone.git(&["pack-refs", "--all"]);
    let lock = clone.root().join(".git/packed-refs.lock");
    std::fs::write(&lock, "").unwrap();
    clone.done("other", &[EDIT]);
    // Only that takes a ref out of the file; what fails names what really stands in the way, and
    // the way out.
    let (code, _, stderr) = clone.handoff(&["clean", "r", "--force", "--transcripts"]);
    assert_eq!(code, 5, "{stderr}");
    let locked = format!("error: refs/handoff/transcripts/r is locked: {} exists", lock.display());
    assert_eq!(find_line(&stderr, "error: "), locked);
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: git handoff doctor --fix   # or, if git is at work here, the same command again");
    age(&lock, 61);
    assert_eq!(found(&clone), (3, vec!["lock-left".into()]));
    assert_eq!(findings(&clone, &["--fix"]), (0, vec![("lock-left".into(), true)]));
    let (clean_code, _, clean_stderr) = clone.handoff(&["clean", "r", "--force", "--transcripts"]);
    assert_eq!(clean_code, 0, "{clean_stderr}");
}

#[test]
fn doctor_releases_packs_of_a_dead_process() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    let folder = clone.root().join(".git/objects/pack");
    let pack = || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let stem = pack().find(|path| path.extension().is_some_and(|extension| extension == "pack")).unwrap();
    let keep = stem.with_extension("keep");
    for mend in [&["doctor", "--fix"][..], &["clean", "--force"]] {
        std::fs::write(&keep, "git-handoff: process 1 keeps this until a ref reaches it\n").unwrap();
        assert_eq!(found(&clone), (3, vec!["keep-left".into()]));
        clone.handoff(&["clean"]);
        assert!(keep.exists(), "clean only lists without --force");
        // Its process lives: the lock says so, whatever number stands there.
        let pack_lock = std::fs::File::open(&keep).unwrap();
        pack_lock.lock().unwrap();
        assert_eq!(findings(&clone, &["--fix"]), (0, vec![]));
        clone.handoff(&["clean", "--force"]);
        assert!(keep.exists());
        // A child that another test starts just now holds the file as well until it is a program of
        // its own.
        pack_lock.unlock().unwrap();
        clone.handoff(mend);
        assert!(!keep.exists(), "{mend:?}");
    }
    // One of git's own is ignored.
    std::fs::write(&keep, "").unwrap();
    assert_eq!(findings(&clone, &["--fix"]), (0, vec![]));
    assert!(keep.exists());
}

#[test]
fn a_multi_pack_index_that_names_packs_that_are_gone_hides_nothing_and_goes() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    let path = clone.root().join(".git/objects/pack/multi-pack-index");
    clone.git(&["multi-pack-index", "write"]);
    assert_eq!(found(&clone), (0, vec![]));
    let index = std::fs::read(&path).unwrap();
    // As one that was being written while others repacked.
    clone.git(&["repack", "-a", "-d", "-q"]);
    std::fs::write(&path, &index).unwrap();
    assert_eq!(clone.handoff(&["verify", "r"]).0, 0);
    assert_eq!(found(&clone), (3, vec!["multi-pack-index-stale".into()]));
    assert_eq!(findings(&clone, &["--fix"]), (0, vec![("multi-pack-index-stale".into(), true)]));
    assert!(!path.exists());
    clone.git(&["fsck", "--strict"]);
    assert_eq!(found(&clone), (0, vec![]));
}

#[test]
fn an_object_that_is_gone_is_found() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    crate::common::loosen(&clone.root());
    let patch = clone.git(&["rev-parse", "refs/handoff/runs/r^{/item.reconciled edit }:patch"]);
    let (folder, name) = patch.trim().split_at(2);
    std::fs::remove_file(clone.root().join(".git/objects").join(folder).join(name)).unwrap();
    assert_eq!(found(&clone), (3, vec!["objects-missing".into()]));
    let (code, _, _) = clone.handoff(&["verify", "r"]);
    assert_eq!(code, 3);
}

#[test]
fn doctor_reports_runs_that_only_a_log_has() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    let end = clone.git(&["rev-parse", "refs/handoff/runs/r"]);
    for state in ["one", "two"] {
        fs::write(clone.root().join("state"), state).unwrap();
        clone.handoff(&["checkpoint", "t", "--state", "state"]);
    }
    fs::remove_file(clone.root().join("state")).unwrap();
    assert_eq!(found(&clone), (0, vec![]));
    let thread = clone.git(&["rev-parse", "refs/handoff/threads/t"]);
    clone.git(&["update-ref", "refs/handoff/threads/t", "refs/handoff/threads/t~1"]);
    clone.git(&["update-ref", "-d", "refs/handoff/runs/r"]);
    let (code, answer) = clone.answer(&["doctor"]);
    let hints: Vec<_> = answer["findings"].as_array().unwrap().iter().map(|one| (&one["code"], &one["hint"])).collect();
    let restore = json!(format!("git update-ref refs/handoff/runs/r {}", end.trim()));
    assert_eq!((code, hints[0]), (3, (&json!("run-gone"), &restore)), "{answer}");
    assert_eq!(hints[1].0, "thread-rewound", "{answer}");
    clone.git(&["update-ref", "-d", "refs/handoff/threads/t"]);
    assert_eq!(found(&clone), (3, vec!["run-gone".into(), "thread-gone".into()]));
    // A copy that was fetched says where it was.
    clone.git(&["update-ref", "refs/handoff/remotes/hub/threads/t", thread.trim()]);
    let (_, doctor_answer) = clone.answer(&["doctor"]);
    let hint =
        &doctor_answer["findings"].as_array().unwrap().iter().find(|one| one["code"] == "thread-gone").unwrap()["hint"];
    assert_eq!(*hint, format!("git update-ref refs/handoff/threads/t {}", thread.trim()));
    clone.git(&["update-ref", "refs/handoff/threads/t", thread.trim()]);
    clone.git(&["update-ref", "refs/handoff/runs/r", end.trim()]);
    let (second_code, codes) = found(&clone);
    assert!(second_code == 0 && !codes.iter().any(|finding_code| finding_code.ends_with("-gone")), "{codes:?}");
}

#[test]
fn doctor_reports_a_fetch_that_prunes_evidence() {
    let clone = TestClone::new();
    let ours = "refs/handoff/*:refs/handoff/remotes/hub/*";
    clone.git(&["config", "remote.hub.fetch", "+refs/heads/*:refs/remotes/hub/*"]);
    clone.git(&["config", "fetch.prune", "true"]);
    clone.git(&["config", "remote.other.fetch", ours]);
    clone.git(&["config", "remote.other.prune", "no"]);
    assert_eq!(found(&clone), (0, vec![]), "branches may go, and what is not pruned stays");
    for refspec in [ours, "+refs/*:refs/*", "refs/heads/handoff/runs/*:refs/handoff/remotes/hub/runs/*"] {
        clone.git(&["config", "--add", "remote.hub.fetch", refspec]);
        let (code, answer) = clone.answer(&["doctor"]);
        let finding = &answer["findings"][0];
        assert_eq!((code, &finding["code"]), (3, &json!("prune-evidence")), "{answer}");
        let why = format!(
            "`fetch.prune` with remote.hub.fetch = {refspec}: a plain `git fetch` deletes the refs of evidence here that \
             \"hub\" shows no more"
        );
        assert_eq!(finding["message"], why);
        clone.git(&["config", "remote.hub.prune", "false"]);
        assert_eq!(found(&clone), (0, vec![]), "as the hint says");
        clone.git(&["config", "--unset", "remote.hub.prune"]);
        clone.git(&["config", "--fixed-value", "--unset", "remote.hub.fetch", refspec]);
    }
    clone.git(&["config", "--unset", "fetch.prune"]);
    clone.git(&["config", "--add", "remote.hub.fetch", ours]);
    assert_eq!(found(&clone), (0, vec![]), "nothing prunes unless it is told to");
    clone.git(&["config", "remote.hub.prune", "true"]);
    let (_, answer) = clone.answer(&["doctor"]);
    assert_eq!(
        answer["findings"][0]["hint"],
        "git config remote.hub.prune false   # or take the refspec out: `git handoff fetch` needs none"
    );
}

#[test]
fn doctor_reports_a_mirror_remote() {
    let clone = TestClone::new();
    clone.git(&["config", "remote.hub.mirror", "yes"]);
    clone.git(&["config", "remote.other.mirror", "no"]);
    let (code, answer) = clone.answer(&["doctor"]);
    let finding = &answer["findings"][0];
    assert_eq!(
        (code, &finding["code"], &finding["hint"]),
        (3, &json!("mirror"), &json!("git config --unset remote.hub.mirror"))
    );
    clone.git(&["config", "--unset", "remote.hub.mirror"]);
    assert_eq!(found(&clone), (0, vec![]));
}

#[test]
fn replace_refs_and_names_of_another_hash_have_a_line() {
    let clone = TestClone::new();
    let [main, head] = ["HEAD:main.txt", "HEAD"].map(|name| clone.git(&["rev-parse", name]).trim().to_owned());
    clone.write("other.txt", "other\n");
    let other = clone.git(&["hash-object", "-w", "other.txt"]);
    clone.git(&["replace", &main, other.trim()]);
    let (code, answer) = clone.answer(&["doctor"]);
    let finding = &answer["findings"][0];
    assert_eq!((code, &finding["code"], &finding["severity"]), (0, &json!("replace-refs"), &json!("note")));
    let why = format!(
        "1 object(s) are replaced by refs in refs/replace/, such as {main}: git shows the replacements, and items start \
         from the objects themselves"
    );
    assert_eq!(finding["message"], why);
    assert_eq!(finding["hint"], "git replace --list   # to remove one: git replace -d ID");
    // A commit as well, and what is evidence is a problem of its own.
    clone.done("r", &[EDIT]);
    let second = clone.git(&["commit-tree", "-m", "another", "HEAD^{tree}"]);
    clone.git(&["replace", &head, second.trim()]);
    let run = clone.git(&["rev-parse", "refs/handoff/runs/r"]);
    clone.git(&["replace", "-f", run.trim(), &head]);
    assert_eq!(found(&clone), (3, vec!["replaced".into(), "replace-refs".into()]));
    clone.git(&["replace", "-d", run.trim(), &main]);
    for id in clone.git(&["replace", "--list"]).lines() {
        clone.git(&["replace", "-d", id]);
    }
    assert_eq!(found(&clone), (0, vec![]));
    clone.git(&["config", "core.repositoryFormatVersion", "1"]);
    clone.git(&["config", "extensions.compatObjectFormat", "sha256"]);
    let (doctor_code, doctor_answer) = clone.answer(&["doctor"]);
    let second_finding = &doctor_answer["findings"][0];
    assert_eq!(
        (doctor_code, &second_finding["code"], &second_finding["severity"]),
        (0, &json!("compat-object-format"), &json!("note"))
    );
    assert_eq!(
        second_finding["hint"],
        "git config --unset extensions.compatObjectFormat   # unless you need the other names"
    );
}
