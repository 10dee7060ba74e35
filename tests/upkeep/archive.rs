//! Runs that are put away, and brought back: found as before, and nothing of them is lost on the
//! way.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::process::Command;

use serde_json::{Value, json};

use crate::common::place::Place;

const EDIT: (&str, &str, Option<&str>) = ("edit", "echo said; sed -i s/two/TWO/ main.txt; echo o > outputs/o", None);

/// A repository with the runs `a`, `b` and `c`.
fn three() -> Place {
    let place = Place::new();
    ["a", "b", "c"].iter().for_each(|run| place.done(run, &[EDIT]));
    place
}

fn refs(place: &Place) -> Vec<String> {
    let listed = place.git(&["for-each-ref", "--format=%(refname)", "refs/handoff"]);
    listed.lines().map(|name| name.split("SHA256").next().unwrap().to_owned()).collect()
}

/// Returns all that the evidence of a run is: its verdict, its entries, a product, a transcript.
fn seen(place: &Place, run: &str) -> Vec<String> {
    let target = format!("{run}/edit");
    let asked = [vec!["verify", run], vec!["log", run, "--json"], vec!["status", run, "--json"], vec!["show", &target]];
    let products = ["patch", "outputs/o", "transcript", "manifest"].map(|product| format!("{target}:{product}"));
    let cats = products.iter().map(|product| vec!["cat", product.as_str()]);
    let all = asked.into_iter().chain(cats);
    all.map(|words| {
        let (code, out, err) = place.handoff(&words);
        assert_eq!(code, 0, "{words:?}: {err}");
        out
    })
    .collect()
}

fn archive(place: &Place, words: &[&str]) -> (i32, Value) {
    place.answer(&[&["archive"], words].concat())
}

#[test]
fn what_is_archived_is_found_as_before_and_comes_back_as_it_was() {
    let place = three();
    let (before, listed) = (seen(&place, "a"), refs(&place));
    let (code, answer) = archive(&place, &["a", "b"]);
    assert_eq!((code, answer["runs"].as_array().unwrap().len()), (0, 2));
    assert_eq!(answer["refs"]["before"], listed.len());
    let archived = refs(&place);
    assert_eq!(answer["refs"]["after"], archived.len());
    let (mut left, kept) = (vec!["refs/handoff/archives/"], "refs/handoff/bases/@archived");
    left.extend([
        kept,
        "refs/handoff/bases/c",
        "refs/handoff/logs/",
        "refs/handoff/runs/c",
        "refs/handoff/transcripts/c",
    ]);
    assert_eq!(archived, left);
    assert_eq!(seen(&place, "a"), before);
    // Nothing that git takes away by itself is part of it.
    place.git(&["gc", "--quiet", "--prune=now"]);
    place.git(&["fsck", "--strict"]);
    assert_eq!(seen(&place, "a"), before);
    let (_, signers, _) = place.handoff(&["key"]);
    std::fs::write(place.home().join("signers"), signers).unwrap();
    let signers = format!("gpg.ssh.allowedSignersFile={}", place.home().join("signers").display());
    let archive = place.git(&["for-each-ref", "--format=%(objectname)", "refs/handoff/archives"]);
    place.git(&["-c", &signers, "verify-commit", archive.trim()]);
    assert_eq!(place.handoff(&["unarchive", "a", "b"]).0, 0);
    let back: Vec<String> =
        refs(&place).into_iter().filter(|name| !archived.contains(name) || listed.contains(name)).collect();
    assert_eq!(back, listed);
    assert_eq!(seen(&place, "a"), before);
}

#[test]
fn archived_runs_are_listed_where_that_is_asked_for_and_their_names_stay_taken() {
    let place = three();
    archive(&place, &["a"]);
    let (_, out, err) = place.handoff(&["runs"]);
    assert!(!out.contains("a  default"), "{out}{err}");
    insta::assert_snapshot!(err, @"
    1 run archived and not listed
    hint: git handoff runs --archived
    ");
    let (_, answer) = place.answer(&["runs", "--archived"]);
    let listed: Vec<_> = answer["runs"].as_array().unwrap().iter().map(|run| (&run["run"], &run["archived"])).collect();
    assert_eq!(json!(listed), json!([["c", null], ["b", null], ["a", true]]));
    // Another plan of that name is refused, and the same one is the run that there is.
    let other = place.plan("a", &[("edit", "true", None)]);
    let (code, _, err) = place.handoff(&["submit", &other]);
    assert_eq!(code, 1, "{code} {err}");
    insta::assert_snapshot!(err, @r#"
    error: the run "a" exists already with another plan or another writer
    hint: git handoff show a   # or give the plan another id
    "#);
    assert_eq!(place.handoff(&["verify", "--all"]).0, 0);
    assert_eq!(place.handoff(&["doctor"]).0, 0);
    let (code, out, _) = place.handoff(&["bundle", "--all", "--output", "../all.bundle"]);
    assert_eq!(code, 0, "{out}");
    assert_eq!(place.handoff(&["verify", "--bundle", "../all.bundle", "a"]).0, 0);
}

#[test]
fn only_what_is_sealed_sound_and_ours_is_archived() {
    let place = three();
    let open = place.plan("open", &[EDIT]);
    place.handoff(&["submit", &open]);
    let before = refs(&place);
    for (words, says) in [
        (&["archive", "open"][..], "is not sealed"),
        (&["archive", "a", "open"], "is not sealed"),
        (&["archive", "nowhere"], "there is no run \"nowhere\""),
        (&["unarchive", "a"], "is not archived"),
    ] {
        let (code, _, err) = place.handoff(words);
        assert!(code == 1 && err.contains(says), "{words:?}: {code} {err}");
    }
    for words in [&["archive"][..], &["archive", "--older-than", "soon"], &["archive", "--older-than", "0d"]] {
        assert_eq!(place.handoff(words).0, 2, "{words:?}");
    }
    assert_eq!(refs(&place), before, "nothing is archived where one is refused");
    // A run that does not hold together stays where people look for it; the others go.
    let broken = place.git(&["commit-tree", "HEAD^{tree}", "-p", "refs/handoff/runs/b", "-m", "x"]);
    place.git(&["update-ref", "refs/handoff/runs/b", broken.trim()]);
    let (code, answer) = archive(&place, &["--older-than", "1ms"]);
    assert_eq!(code, 1, "{answer}");
    let runs: Vec<_> = answer["runs"].as_array().unwrap().iter().map(|run| run["run"].clone()).collect();
    assert_eq!((json!(runs), &answer["left"][0]["run"]), (json!(["a", "c"]), &json!("b")));
    assert!(refs(&place).contains(&"refs/handoff/runs/b".to_owned()));
}

#[test]
fn a_dry_run_says_what_would_be_and_changes_nothing() {
    let place = three();
    let before = refs(&place);
    let (code, answer) = archive(&place, &["a", "--dry-run"]);
    assert_eq!((code, &answer["dryRun"], &answer["refs"]["after"]), (0, &json!(true), &json!(before.len() - 1)));
    assert_eq!(refs(&place), before);
}

#[test]
fn what_died_between_archive_and_refs_is_taken_from_there() {
    let place = three();
    let before = seen(&place, "a");
    archive(&place, &["a"]);
    assert_eq!(place.handoff(&["unarchive", "a"]).0, 0);
    // Both places have it now, as after a crash before the refs went.
    assert_eq!(seen(&place, "a"), before);
    let tip = place.git(&["for-each-ref", "--format=%(objectname)", "refs/handoff/archives"]);
    assert_eq!(archive(&place, &["a"]).0, 0);
    assert_eq!(
        place.git(&["for-each-ref", "--format=%(objectname)", "refs/handoff/archives"]),
        tip,
        "it holds it already"
    );
    assert!(!refs(&place).contains(&"refs/handoff/runs/a".to_owned()));
    let (code, answer) = archive(&place, &["a"]);
    assert_eq!((code, &answer["runs"][0]["already"]), (0, &json!(true)));
}

#[test]
fn transcripts_of_archived_runs_are_cleaned_for_good_and_nothing_else_goes() {
    let place = Place::new();
    place.done("a", &[("edit", "echo what only this one says; sed -i s/two/TWO/ main.txt", None)]);
    ["b", "c"].iter().for_each(|run| place.done(run, &[EDIT]));
    let transcript = place.git(&["rev-parse", "refs/handoff/transcripts/a"]).trim().to_owned();
    archive(&place, &["a", "b"]);
    // Archived once more, so that more than one commit keeps what was kept first.
    archive(&place, &["c"]);
    let before = place.handoff(&["cat", "b/edit:transcript"]).1;
    // One has a ref of its own again, and what was kept of it.
    assert_eq!(place.handoff(&["unarchive", "b"]).0, 0);
    let (_, answer) = place.answer(&["clean", "--transcripts"]);
    let listed: Vec<_> = answer["pieces"].as_array().unwrap().iter().map(|piece| piece["run"].clone()).collect();
    assert_eq!(json!(listed), json!(["a", "b", "c"]));
    assert_eq!(place.handoff(&["cat", "a/edit:transcript"]).0, 0, "it was only listed");
    assert_eq!(place.handoff(&["clean", "a", "--transcripts", "--force"]).0, 0);
    assert_ne!(place.handoff(&["cat", "a/edit:transcript"]).0, 0);
    assert_eq!(place.handoff(&["cat", "b/edit:transcript"]).1, before);
    assert_eq!(place.handoff(&["clean", "b", "--transcripts", "--force"]).0, 0);
    assert_ne!(place.handoff(&["cat", "b/edit:transcript"]).0, 0, "what was kept went with the ref");
    place.git(&["reflog", "expire", "--expire=now", "--all"]);
    place.git(&["gc", "--quiet", "--prune=now"]);
    let has = Command::new("git").args(["cat-file", "-e", &transcript]).current_dir(place.root()).status().unwrap();
    assert!(!has.success(), "nothing reaches it any more");
    // The bases are kept, and the runs verify.
    for run in ["a", "b", "c"] {
        assert_eq!(place.handoff(&["verify", run]).0, 0, "{run}");
    }
    assert_eq!(place.handoff(&["cat", "c/edit:transcript"]).0, 0);
    place.git(&["fsck", "--strict"]);
    let (_, answer) = place.answer(&["clean", "a", "--transcripts"]);
    assert_eq!(answer["pieces"], json!([]), "there is nothing of it any more");
}

#[test]
fn an_archive_of_ours_that_cannot_be_read_is_said_and_hides_nothing() {
    let place = three();
    archive(&place, &["a"]);
    let name = place.git(&["for-each-ref", "--format=%(refname)", "refs/handoff/archives"]);
    let garbage = place.git(&["commit-tree", "HEAD^{tree}", "-p", name.trim(), "-m", "x"]);
    place.git(&["update-ref", name.trim(), garbage.trim()]);
    let (code, _, err) = place.handoff(&["verify", "a"]);
    assert!(code != 0 && err.contains("which holds archived runs, cannot be read"), "{code} {err}");
    assert_eq!(place.handoff(&["verify", "b"]).0, 0, "what has a ref needs no archive");
    // Everything else goes on: only the run that lies there is hurt.
    for fine in [&["status", "b"][..], &["show", "b"], &["run", "b"], &["cat", "b/edit:patch"], &["waiting"]] {
        let (code, _, err) = place.handoff(fine);
        assert_eq!(code, 0, "{fine:?} {err}");
    }
    place.done("new", &[EDIT]);
    let (code, _, err) = place.handoff(&["verify", "nowhere"]);
    assert_eq!(code, 1, "{code} {err}");
    insta::assert_snapshot!(err, @r#"
    error: there is no run "nowhere" here
    hint: git handoff runs
    "#);
    let (code, out, err) = place.handoff(&["runs"]);
    assert!(code == 0 && out.contains("b  ") && out.contains("new  "), "{out}{err}");
    assert!(err.contains("warning: runs are not listed: refs/handoff/archives/") && err.contains("cannot be read"));
    let (code, out, err) = place.handoff(&["verify", "--all"]);
    assert!(code == 3 && out.contains("verify · b ") && out.contains("verify · new "), "{code} {out}");
    assert!(err.contains("error: the run \"a\" is archived: refs/handoff/archives/"), "{err}");
    assert!(!err.contains("is gone"), "{err}");
    let (code, out, err) = place.handoff(&["doctor"]);
    assert!(code != 0 && format!("{out}{err}").contains("is not sound"), "{code} {out}{err}");
    place.git(&["update-ref", name.trim(), &format!("{}~1", garbage.trim())]);
    assert_eq!(place.handoff(&["verify", "a"]).0, 0);
}
