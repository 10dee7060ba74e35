//! What a crash, a person or a setting can leave behind, what the doctor says of it, and what cleaning up removes.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::place::Place;

const EDIT: (&str, &str, Option<&str>) = ("edit", "echo said; sed -i s/two/TWO/ main.txt", None);

/// Returns the codes of what is found, with whether each was mended.
fn findings(place: &Place, arguments: &[&str]) -> (i32, Vec<(String, bool)>) {
    let (code, answer) = place.answer(&[&["doctor"], arguments].concat());
    assert_eq!(answer["schema"], "git-handoff.doctor/1");
    let of = |finding: &Value| (finding["code"].as_str().unwrap().to_owned(), finding["fixed"].as_bool().unwrap());
    (code, answer["findings"].as_array().unwrap().iter().map(of).collect())
}

fn found(place: &Place) -> (i32, Vec<String>) {
    let (code, findings) = findings(place, &[]);
    (code, findings.into_iter().map(|(code, _)| code).collect())
}

#[test]
fn a_healthy_repository_has_nothing_to_complain_about() {
    let place = Place::new();
    assert_eq!(found(&place), (0, vec![]));
    assert!(!place.root().join(".git/handoff").exists(), "looking makes no key");
    place.done("r", &[EDIT]);
    assert_eq!(found(&place), (0, vec![]));
}

#[test]
fn what_a_crash_after_submit_or_seal_left_out_is_put_in_place() {
    let place = Place::new();
    place.done("r", &[EDIT]);
    place.git(&["update-ref", "-d", "refs/handoff/bases/r"]);
    let log = place.git(&["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]);
    place.git(&["update-ref", log.trim(), &format!("{}~1", log.trim())]);
    assert_eq!(found(&place), (3, vec!["base-missing".into(), "seal-not-logged".into()]));
    let mended = vec![("base-missing".into(), true), ("seal-not-logged".into(), true)];
    assert_eq!(findings(&place, &["--fix"]), (0, mended));
    assert_eq!(found(&place), (0, vec![]));
    place.git(&["update-ref", "-d", log.trim()]);
    assert_eq!(findings(&place, &["--fix"]), (0, vec![("log-missing".into(), true)]));
    let (code, _, stderr) = place.handoff(&["verify", "r"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_log_is_not_made_to_witness_a_run_that_was_tampered_with() {
    let place = Place::new();
    place.done("r", &[EDIT]);
    let log = place.git(&["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]);
    place.git(&["update-ref", "-d", log.trim()]);
    let tree = place.git(&["rev-parse", "main^{tree}"]);
    // The seal's entry over another tree: still readable, no longer what was signed.
    let raw = place.git(&["cat-file", "commit", "refs/handoff/runs/r"]);
    let forged = raw.replacen(raw.lines().next().unwrap(), &format!("tree {}", tree.trim()), 1);
    place.write("forged", &forged);
    let forged = place.git(&["hash-object", "-w", "-t", "commit", "forged"]);
    place.git(&["update-ref", "refs/handoff/runs/r", forged.trim()]);
    let (code, findings) = findings(&place, &["--fix"]);
    assert_eq!((code, findings.iter().any(|(_, fixed)| *fixed)), (3, false), "{findings:?}");
    assert_eq!(place.git(&["for-each-ref", "refs/handoff/logs"]), "");
}

#[test]
fn stale_locks_open_keys_and_replace_refs_are_found() {
    let place = Place::new();
    place.done("r", &[EDIT]);
    place.write(".git/refs/handoff/runs/r.lock", "");
    let key = place.root().join(".git/handoff/signing_key");
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    place.git(&["config", "gc.pruneExpire", "now"]);
    let (seal, first) = (place.git(&["rev-parse", "refs/handoff/runs/r"]), place.git(&["rev-parse", "main"]));
    place.git(&["replace", seal.trim(), first.trim()]);
    let (code, codes) = found(&place);
    assert_eq!((code, codes), (3, ["key-readable", "prune-now", "replaced", "stale-lock"].map(str::to_owned).to_vec()));
    let (code, mended) = findings(&place, &["--fix"]);
    let fixed: Vec<_> = mended.iter().filter(|(_, fixed)| *fixed).map(|(code, _)| code.as_str()).collect();
    assert_eq!((code, fixed), (3, vec!["key-readable", "stale-lock"]));
    place.git(&["replace", "-d", seal.trim()]);
    place.git(&["config", "gc.pruneExpire", "2.weeks.ago"]);
    assert_eq!(found(&place), (0, vec![]));
}

#[test]
fn runs_that_wait_for_somebody_are_named_with_the_command() {
    let place = Place::new();
    let plan = place.plan("r", &[("fail", "exit 1", None)]);
    place.handoff(&["run", &plan]);
    let (code, answer) = place.answer(&["doctor"]);
    assert_eq!((code, &answer["findings"][0]["hint"]), (3, &json!("git handoff close r")));
    place.handoff(&["close", "r"]);
    assert_eq!(found(&place), (0, vec![]));
    place.git(&["update-ref", "refs/handoff/runs/x", "HEAD"]);
    assert_eq!(found(&place), (3, vec!["unreadable-run".into()]));
}

/// Leaves the worktree of a failed attempt on the disk, as a conductor that is told to keep them does.
fn with_leftover(place: &Place) -> PathBuf {
    place.git(&["config", "handoff.workspace.keep", "true"]);
    let plan = place.plan("r", &[("fail", "echo said; echo work > work.txt; exit 1", None)]);
    place.handoff(&["run", &plan, "--close"]);
    let (code, answer) = place.answer(&["clean"]);
    assert_eq!(code, 0);
    assert_eq!(answer["schema"], "git-handoff.clean/1");
    assert_eq!((&answer["dryRun"], &answer["pieces"][0]["removed"]), (&json!(true), &json!(false)));
    PathBuf::from(answer["pieces"][0]["path"].as_str().unwrap())
}

#[test]
fn worktrees_are_listed_first_then_saved_and_removed() {
    let place = Place::new();
    let path = with_leftover(&place);
    assert_eq!(found(&place), (3, vec!["worktrees-left".into()]));
    let (_, stdout, stderr) = place.handoff(&["clean", "--force", "--dry-run"]);
    assert!(stdout.starts_with("would remove worktree ") && stderr.contains("--force"), "{stdout}{stderr}");
    assert!(path.exists());
    let (code, answer) = place.answer(&["clean", "-f"]);
    assert_eq!((code, &answer["pieces"][0]["removed"]), (0, &json!(true)), "{answer}");
    assert!(answer["bytes"].as_u64().unwrap() > 0);
    assert!(!path.exists());
    assert!(place.git(&["ls-tree", "-r", "--name-only", "refs/handoff/salvage/r"]).contains("work.txt"));
    assert_eq!(found(&place), (0, vec![]));
}

#[test]
fn transcripts_and_salvage_go_only_when_asked_for_and_the_run_still_verifies() {
    let place = Place::new();
    with_leftover(&place);
    place.handoff(&["clean", "-f"]);
    let refs =
        || place.git(&["for-each-ref", "--format=%(refname)", "refs/handoff/transcripts", "refs/handoff/salvage"]);
    assert_eq!(refs(), "refs/handoff/salvage/r\nrefs/handoff/transcripts/r\n");
    let (code, answer) = place.answer(&["clean", "r", "-f", "--transcripts", "--salvage"]);
    assert_eq!(code, 0, "{answer}");
    assert_eq!(refs(), "");
    let (code, _, stderr) = place.handoff(&["verify", "r"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_run_that_is_not_sealed_keeps_everything() {
    let place = Place::new();
    let plan = place.plan("r", &[("fail", "echo said; exit 1", None)]);
    place.handoff(&["run", &plan]);
    place.handoff(&["clean", "-f", "--transcripts", "--salvage"]);
    assert!(place.git(&["for-each-ref", "refs/handoff/transcripts"]).contains("refs/handoff/transcripts/r"));
}

#[test]
fn a_conductor_that_was_killed_leaves_a_run_that_is_named_and_continued() {
    let place = Place::new();
    let plan =
        place.plan("r", &[("slow", "touch \"$HOME/started\"; test -e \"$HOME/go\" || sleep 60; echo x > x", None)]);
    let mut conductor = place.start(&["run", &plan]);
    while !place.home().join("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(found(&place), (0, vec![]), "a run that is being driven is fine");
    let (_, answer) = place.answer(&["clean", "-f"]);
    assert_eq!(answer["pieces"], json!([]), "a run that is being driven is left alone");
    conductor.kill().unwrap();
    conductor.wait().unwrap();
    assert_eq!(found(&place), (3, vec!["stranded".into()]));
    std::fs::write(place.home().join("go"), "").unwrap();
    let (code, _, stderr) = place.handoff(&["run", "r"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(found(&place), (0, vec![]));
}
