//! Runs that are put away, and brought back: found as before, and nothing of them is lost on the
//! way.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::process::Command;

use serde_json::{Value, json};

use crate::common::clone::TestClone;
use crate::common::report::find_line;

const EDIT: (&str, &str, Option<&str>) = ("edit", "echo said; sed -i s/two/TWO/ main.txt; echo o > outputs/o", None);

/// A repository with the runs `a`, `b` and `c`.
fn three() -> TestClone {
    let clone = TestClone::new();
    ["a", "b", "c"].iter().for_each(|run| clone.done(run, &[EDIT]));
    clone
}

fn refs(clone: &TestClone) -> Vec<String> {
    let listed = clone.git(&["for-each-ref", "--format=%(refname)", "refs/handoff"]);
    listed.lines().map(|name| name.split("SHA256").next().unwrap().to_owned()).collect()
}

/// Returns all that the evidence of a run is: its verdict, its entries, a product, a transcript.
fn query_run(clone: &TestClone, run: &str) -> Vec<String> {
    let target = format!("{run}/edit");
    let commands =
        [vec!["verify", run], vec!["log", run, "--json"], vec!["status", run, "--json"], vec!["show", &target]];
    let products = ["patch", "outputs/o", "transcript", "manifest"].map(|product| format!("{target}:{product}"));
    let cats = products.iter().map(|product| vec!["cat", product.as_str()]);
    let all = commands.into_iter().chain(cats);
    all.map(|words| {
        let (code, out, err) = clone.handoff(&words);
        assert_eq!(code, 0, "{words:?}: {err}");
        out
    })
    .collect()
}

fn archive(clone: &TestClone, words: &[&str]) -> (i32, Value) {
    clone.answer(&[&["archive"], words].concat())
}

#[test]
fn archived_run_answers_and_restores_unchanged() {
    let clone = three();
    let (before, listed) = (query_run(&clone, "a"), refs(&clone));
    let (code, answer) = archive(&clone, &["a", "b"]);
    assert_eq!((code, answer["runs"].as_array().unwrap().len()), (0, 2));
    assert_eq!(answer["refs"]["before"], listed.len());
    let archived = refs(&clone);
    assert_eq!(answer["refs"]["after"], archived.len());
    let (mut left, base_ref) = (vec!["refs/handoff/archives/"], "refs/handoff/bases/@archived");
    left.extend([
        base_ref,
        "refs/handoff/bases/c",
        "refs/handoff/logs/",
        "refs/handoff/runs/c",
        "refs/handoff/transcripts/c",
    ]);
    assert_eq!(archived, left);
    assert_eq!(query_run(&clone, "a"), before);
    // Nothing that git takes away by itself is part of it.
    clone.git(&["gc", "--quiet", "--prune=now"]);
    clone.git(&["fsck", "--strict"]);
    assert_eq!(query_run(&clone, "a"), before);
    let (_, signers, _) = clone.handoff(&["key"]);
    std::fs::write(clone.home().join("signers"), signers).unwrap();
    let second_signers = format!("gpg.ssh.allowedSignersFile={}", clone.home().join("signers").display());
    let archive = clone.git(&["for-each-ref", "--format=%(objectname)", "refs/handoff/archives"]);
    clone.git(&["-c", &second_signers, "verify-commit", archive.trim()]);
    assert_eq!(clone.handoff(&["unarchive", "a", "b"]).0, 0);
    let back: Vec<String> =
        refs(&clone).into_iter().filter(|name| !archived.contains(name) || listed.contains(name)).collect();
    assert_eq!(back, listed);
    assert_eq!(query_run(&clone, "a"), before);
}

#[test]
fn archived_runs_are_listed_with_an_option_and_reserve_their_names() {
    let clone = three();
    archive(&clone, &["a"]);
    let (_, out, err) = clone.handoff(&["runs"]);
    let listed: Vec<&str> = out.lines().filter_map(|line| line.split_once("  default  ")).map(|(run, _)| run).collect();
    assert_eq!(listed, ["c", "b"], "{out}{err}");
    insta::assert_snapshot!(err, @"
    1 run archived and not listed
    hint: git handoff runs --archived
    ");
    let (_, answer) = clone.answer(&["runs", "--archived"]);
    let archived_runs: Vec<_> =
        answer["runs"].as_array().unwrap().iter().map(|run| (&run["run"], &run["archived"])).collect();
    assert_eq!(json!(archived_runs), json!([["c", null], ["b", null], ["a", true]]));
    // Another plan of that name is refused, and the same one is the run that there is.
    let other = clone.plan("a", &[("edit", "true", None)]);
    let (code, _, submit_err) = clone.handoff(&["submit", &other]);
    assert_eq!(code, 1, "{code} {submit_err}");
    insta::assert_snapshot!(submit_err, @r#"
    error: the run "a" exists already with another plan or another writer
    hint: git handoff show a   # or give the plan another id
    "#);
    assert_eq!(clone.handoff(&["verify", "--all"]).0, 0);
    assert_eq!(clone.handoff(&["doctor"]).0, 0);
    let (bundle_code, bundle_out, _) = clone.handoff(&["bundle", "--all", "--output", "../all.bundle"]);
    assert_eq!(bundle_code, 0, "{bundle_out}");
    assert_eq!(clone.handoff(&["verify", "--bundle", "../all.bundle", "a"]).0, 0);
}

#[test]
fn archive_accepts_only_sealed_intact_local_runs() {
    let clone = three();
    let open = clone.plan("open", &[EDIT]);
    clone.handoff(&["submit", &open]);
    let before = refs(&clone);
    let open_run = "error: the run \"open\" is not sealed; only what is sealed is archived";
    for (words, error) in [
        (&["archive", "open"][..], open_run),
        (&["archive", "a", "open"], open_run),
        (&["archive", "nowhere"], "error: there is no run \"nowhere\" here"),
        (&["unarchive", "a"], "error: the run \"a\" is not archived"),
    ] {
        let (code, _, err) = clone.handoff(words);
        assert_eq!((code, find_line(&err, "error: ")), (1, error), "{words:?}");
    }
    for words in [&["archive"][..], &["archive", "--older-than", "soon"], &["archive", "--older-than", "0d"]] {
        assert_eq!(clone.handoff(words).0, 2, "{words:?}");
    }
    assert_eq!(refs(&clone), before, "nothing is archived where one is refused");
    // A run that does not hold together stays where people look for it; the others go.
    let broken = clone.git(&["commit-tree", "HEAD^{tree}", "-p", "refs/handoff/runs/b", "-m", "x"]);
    clone.git(&["update-ref", "refs/handoff/runs/b", broken.trim()]);
    let (code, answer) = archive(&clone, &["--older-than", "1ms"]);
    assert_eq!(code, 1, "{answer}");
    let runs: Vec<_> = answer["runs"].as_array().unwrap().iter().map(|run| run["run"].clone()).collect();
    assert_eq!((json!(runs), &answer["left"][0]["run"]), (json!(["a", "c"]), &json!("b")));
    assert!(refs(&clone).contains(&"refs/handoff/runs/b".to_owned()));
}

#[test]
fn archive_dry_run_changes_nothing() {
    let clone = three();
    let before = refs(&clone);
    let (code, answer) = archive(&clone, &["a", "--dry-run"]);
    assert_eq!((code, &answer["dryRun"], &answer["refs"]["after"]), (0, &json!(true), &json!(before.len() - 1)));
    assert_eq!(refs(&clone), before);
}

#[test]
fn archive_finishes_after_a_crash() {
    let clone = three();
    let before = query_run(&clone, "a");
    archive(&clone, &["a"]);
    assert_eq!(clone.handoff(&["unarchive", "a"]).0, 0);
    // Both places have it now, as after a crash before the refs went.
    assert_eq!(query_run(&clone, "a"), before);
    let tip = clone.git(&["for-each-ref", "--format=%(objectname)", "refs/handoff/archives"]);
    assert_eq!(archive(&clone, &["a"]).0, 0);
    assert_eq!(
        clone.git(&["for-each-ref", "--format=%(objectname)", "refs/handoff/archives"]),
        tip,
        "it holds it already"
    );
    assert!(!refs(&clone).contains(&"refs/handoff/runs/a".to_owned()));
    let (code, answer) = archive(&clone, &["a"]);
    assert_eq!((code, &answer["runs"][0]["already"]), (0, &json!(true)));
}

#[test]
fn transcripts_of_archived_runs_are_cleaned_for_good_and_nothing_else_goes() {
    let clone = TestClone::new();
    clone.done("a", &[("edit", "echo what only this one says; sed -i s/two/TWO/ main.txt", None)]);
    ["b", "c"].iter().for_each(|run| clone.done(run, &[EDIT]));
    let transcript = clone.git(&["rev-parse", "refs/handoff/transcripts/a"]).trim().to_owned();
    archive(&clone, &["a", "b"]);
    // Archived once more, so that more than one commit has the first files.
    archive(&clone, &["c"]);
    let before = clone.handoff(&["cat", "b/edit:transcript"]).1;
    // One has a ref of its own again, and its archived state.
    assert_eq!(clone.handoff(&["unarchive", "b"]).0, 0);
    let (_, answer) = clone.answer(&["clean", "--transcripts"]);
    let listed: Vec<_> = answer["pieces"].as_array().unwrap().iter().map(|piece| piece["run"].clone()).collect();
    assert_eq!(json!(listed), json!(["a", "b", "c"]));
    assert_eq!(clone.handoff(&["cat", "a/edit:transcript"]).0, 0, "it was only listed");
    assert_eq!(clone.handoff(&["clean", "a", "--transcripts", "--force"]).0, 0);
    assert_ne!(clone.handoff(&["cat", "a/edit:transcript"]).0, 0);
    assert_eq!(clone.handoff(&["cat", "b/edit:transcript"]).1, before);
    assert_eq!(clone.handoff(&["clean", "b", "--transcripts", "--force"]).0, 0);
    assert_ne!(clone.handoff(&["cat", "b/edit:transcript"]).0, 0, "what was kept went with the ref");
    clone.git(&["reflog", "expire", "--expire=now", "--all"]);
    clone.git(&["gc", "--quiet", "--prune=now"]);
    let has = Command::new("git").args(["cat-file", "-e", &transcript]).current_dir(clone.root()).status().unwrap();
    assert!(!has.success(), "nothing reaches it any more");
    // The bases survive, and the runs verify.
    for run in ["a", "b", "c"] {
        assert_eq!(clone.handoff(&["verify", run]).0, 0, "{run}");
    }
    assert_eq!(clone.handoff(&["cat", "c/edit:transcript"]).0, 0);
    clone.git(&["fsck", "--strict"]);
    let (_, clean_answer) = clone.answer(&["clean", "a", "--transcripts"]);
    assert_eq!(clean_answer["pieces"], json!([]), "there is nothing of it any more");
}

#[test]
fn unreadable_archive_is_reported_and_hides_nothing() {
    let clone = three();
    archive(&clone, &["a"]);
    let name = clone.git(&["for-each-ref", "--format=%(refname)", "refs/handoff/archives"]);
    let garbage = clone.git(&["commit-tree", "HEAD^{tree}", "-p", name.trim(), "-m", "x"]);
    clone.git(&["update-ref", name.trim(), garbage.trim()]);
    let (code, _, err) = clone.handoff(&["verify", "a"]);
    assert_ne!(code, 0, "{err}");
    let broken = format!("{}, which holds archived runs, cannot be read", name.trim());
    assert_eq!(find_line(&err, "caused by: refs/"), format!("caused by: {broken}"));
    assert_eq!(clone.handoff(&["verify", "b"]).0, 0, "what has a ref needs no archive");
    // Everything else goes on: only the run that lies there is hurt.
    for fine in [&["status", "b"][..], &["show", "b"], &["run", "b"], &["cat", "b/edit:patch"], &["waiting"]] {
        let (fine_code, _, fine_err) = clone.handoff(fine);
        assert_eq!(fine_code, 0, "{fine:?} {fine_err}");
    }
    clone.done("new", &[EDIT]);
    let (verify_code, _, verify_err) = clone.handoff(&["verify", "nowhere"]);
    assert_eq!(verify_code, 1, "{verify_code} {verify_err}");
    insta::assert_snapshot!(verify_err, @r#"
    error: there is no run "nowhere" here
    hint: git handoff runs
    "#);
    let (runs_code, out, runs_err) = clone.handoff(&["runs"]);
    assert_eq!(runs_code, 0, "{out}{runs_err}");
    let listed: Vec<&str> =
        out.lines().filter_map(|line| line.split_once("  default  ")).map(|(run, _)| run.trim()).collect();
    assert_eq!(listed, ["new", "c", "b"], "{out}{runs_err}");
    let why = format!(
        "{broken}: commit {} of the archive cannot be read: the commit is not an entry: the message is not a subject and an entry",
        garbage.trim()
    );
    assert_eq!(runs_err, format!("warning: runs are not listed: {why}\n"));
    let (all_code, all_out, all_err) = clone.handoff(&["verify", "--all"]);
    assert_eq!(all_code, 3, "{all_out}{all_err}");
    let verified = all_out.lines().filter(|line| line.starts_with("git handoff verify"));
    assert_eq!(
        verified.collect::<Vec<_>>(),
        [
            "git handoff verify · b                                          ✓ INTACT · tamper-detecting",
            "git handoff verify · c                                          ✓ INTACT · tamper-detecting",
            "git handoff verify · new                                        ✓ INTACT · tamper-detecting",
        ]
    );
    assert_eq!(all_err, format!("error: the run \"a\" is archived: {why}\n"));
    let (doctor_code, doctor_out, doctor_err) = clone.handoff(&["doctor"]);
    assert_ne!(doctor_code, 0, "{doctor_out}{doctor_err}");
    let begin = format!("problem: the archive {} is not sound: commit ", name.trim());
    let end = ": the commit is not an entry: the message is not a subject and an entry";
    assert!(doctor_out.lines().any(|line| line.starts_with(&begin) && line.ends_with(end)), "{doctor_out}{doctor_err}");
    clone.git(&["update-ref", name.trim(), &format!("{}~1", garbage.trim())]);
    assert_eq!(clone.handoff(&["verify", "a"]).0, 0);
}
