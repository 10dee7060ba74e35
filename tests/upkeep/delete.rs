//! Runs that are deleted for good: all of them goes that is here, nothing of others does, and what
//! stays is said.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use serde_json::{Value, json};

use crate::common::clone::TestClone;
use crate::common::repo::{TestRepo, item, wait_for};
use crate::common::report::find_line;

const EDIT: (&str, &str, Option<&str>) = ("edit", "echo said; sed -i s/two/TWO/ main.txt; echo o > outputs/o", None);

fn refs(clone: &TestClone) -> Vec<String> {
    let listed = clone.git(&["for-each-ref", "--format=%(refname)", "refs/handoff"]);
    listed.lines().map(str::to_owned).collect()
}

/// Returns what has the name of the run `a` in the git directory, logs and the record of the
/// deletion aside.
fn traces(clone: &TestClone) -> Vec<String> {
    let handoff = clone.root().join(".git/handoff");
    let folders = ["locks/runs", "verified"].map(|below| handoff.join(below));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.chain(refs(clone)).filter(|name| name == "a" || name.ends_with("/a")).collect()
}

#[test]
fn a_deleted_run_is_gone_with_all_that_is_here_of_it() {
    let clone = TestClone::new();
    clone.git(&["config", "handoff.workspace.keep", "true"]);
    let plan = clone.plan("a", &[EDIT, ("fail", "echo work > work.txt; exit 1", None)]);
    clone.handoff(&["run", &plan, "--close"]);
    clone.done("b", &[EDIT]);
    clone.handoff(&["verify", "a"]);
    clone.handoff(&["runs"]);
    assert!(clone.home().join(".cache/git-handoff").read_dir().unwrap().next().is_some(), "a worktree was kept");
    let proof = clone.handoff(&["prove", "a/edit"]).1;
    clone.write("proof.json", &proof);
    let before = refs(&clone).len();

    let (code, answer) = clone.answer(&["delete", "a", "--yes"]);
    assert_eq!(code, 0, "{answer}");
    let run = &answer["runs"][0];
    let gone: Vec<&str> = run["refs"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(gone, ["runs", "bases", "transcripts", "salvage"].map(|kind| format!("refs/handoff/{kind}/a")));
    assert_eq!((&run["run"], &run["worktrees"]), (&json!("a"), &json!(2)));
    assert!(run["bytes"].as_u64().unwrap() > 0 && run["log"].is_string(), "{answer}");
    assert_eq!(refs(&clone).len(), before - 4);
    assert_eq!(traces(&clone), Vec::<String>::new());
    assert!(!clone.root().join(".git/handoff/lists").exists(), "the list with its goal is gone");

    // Existing evidence stays valid, and the other run is unchanged.
    assert_eq!(clone.handoff(&["verify", "--proof", "proof.json"]).0, 0);
    assert_eq!(clone.handoff(&["verify", "b"]).0, 0);
    clone.git(&["fsck", "--strict"]);
    let (doctor_code, doctor_answer) = clone.answer(&["doctor"]);
    let finding = &doctor_answer["findings"][0];
    assert_eq!(
        (doctor_code, &finding["code"], &finding["severity"]),
        (0, &json!("run-deleted"), &json!("note")),
        "{doctor_answer}"
    );
    // `verify --all` reports it and passes, but only with a record by the key's holder.
    let (verify_code, out, err) = clone.handoff(&["verify", "--all"]);
    assert_eq!(verify_code, 0, "{out}{err}");
    let note = err.trim_end();
    assert!(note.starts_with("the run \"a\" was deleted at 2") && note.ends_with("Z by human:Ada"), "{err}");
    assert_eq!(finding["message"], format!("{note}; a log still names it"));
    let record = clone.root().join(".git/handoff/deleted/a");
    let honest = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, honest.replace("human:", "human:not-")).unwrap();
    let (reverify_code, _, verify_err) = clone.handoff(&["verify", "--all"]);
    assert_eq!(reverify_code, 3, "{verify_err}");
    let log = clone.git(&["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]);
    let second_gone = format!("error: the ref refs/handoff/runs/a is gone, but the log {} holds the run", log.trim());
    assert_eq!(verify_err, format!("{second_gone}\n{}\n", note.replace("human:Ada", "human:not-Ada")));
    assert_eq!(clone.answer(&["doctor"]).1["findings"][0]["code"], "run-gone");
    std::fs::write(&record, honest).unwrap();
    // It is gone for everybody else, and its id stays taken.
    for words in [["delete", "a"], ["status", "a"], ["delete", "nowhere"]] {
        let (words_code, _, words_err) =
            clone.handoff(&[&words[..], if words[0] == "delete" { &["--yes"] } else { &[] }].concat());
        assert_eq!(words_code, 1, "{words:?}: {words_err}");
        let hint = "hint: git handoff runs";
        assert_eq!(words_err, format!("error: there is no run \"{}\" here\n{hint}\n", words[1]));
    }
    let (submit_code, _, submit_err) = clone.handoff(&["submit", &plan]);
    assert_eq!(submit_code, 1, "{submit_code} {submit_err}");
    insta::assert_snapshot!(submit_err, @r#"
    error: the id "a" was used before: a log of your key names it, and its ref is gone
    hint: give the plan another id than "a"
    "#);
}

#[test]
fn delete_lists_traces_in_logs_and_proofs() {
    let clone = TestClone::new();
    clone.done("a", &[EDIT]);
    let (code, out, err) = clone.handoff(&["delete", "a", "-y"]);
    assert_eq!((code, out.as_str()), (0, "deleted a: 3 refs\n"), "{err}");
    for note in [
        "the logs of this repository go on naming a: the id stays taken; `verify --all` says that the run was deleted, \
         and anchors that it is gone",
        "proofs and bundles that were made of a stay valid; new ones cannot be made here, and commits with its products \
         cannot be verified here any more",
        "git keeps objects that nothing refers to for two weeks; git gc --prune=now removes them at once",
    ] {
        assert!(err.lines().any(|line| line == note), "{note}: {err}");
    }
}

#[test]
fn without_a_terminal_and_without_yes_nothing_is_deleted() {
    let clone = TestClone::new();
    clone.done("a", &[EDIT]);
    let before = refs(&clone);
    let (code, _, err) = clone.handoff(&["delete", "a"]);
    assert_eq!(code, 2, "{err}");
    insta::assert_snapshot!(err, @"
    error: deleting a run needs --yes where there is no terminal to ask on
    hint: git handoff delete --yes a
    ");
    // One that is not there keeps the others from being deleted.
    assert_eq!(clone.handoff(&["delete", "a", "nowhere", "--yes"]).0, 1);
    assert_eq!(clone.handoff(&["delete"]).0, 2);
    assert_eq!(refs(&clone), before);
}

#[test]
fn a_deleted_run_leaves_its_archive_and_the_others_stay_there() {
    let clone = TestClone::new();
    ["a", "b", "c"].iter().for_each(|run| clone.done(run, &[EDIT]));
    assert_eq!(clone.handoff(&["archive", "a", "b"]).0, 0);
    let (code, answer) = clone.answer(&["delete", "a", "--yes"]);
    assert_eq!((code, answer["runs"][0]["archives"].as_array().unwrap().len()), (0, 1), "{answer}");
    let (_, listed) = clone.answer(&["runs", "--archived"]);
    let mut names: Vec<&str> =
        listed["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(clone.handoff(&["cat", "b/edit:transcript"]).1, "said\n");
    for run in ["b", "c"] {
        assert_eq!(clone.handoff(&["verify", run]).0, 0, "{run}");
    }
    // Nothing reaches the seal any more, and the archive is one that git and we take for sound.
    clone.git(&["gc", "--quiet", "--prune=now"]);
    clone.git(&["fsck", "--strict"]);
    assert_eq!(clone.handoff(&["verify", "b"]).0, 0);
    assert_eq!(clone.answer(&["doctor"]).0, 0);
    // With the last run the archive goes as well.
    assert_eq!(clone.handoff(&["delete", "b", "--yes"]).0, 0);
    assert!(refs(&clone).iter().all(|name| !name.contains("/archives/")), "{:?}", refs(&clone));
    assert_eq!(clone.handoff(&["unarchive", "b"]).0, 1);
}

#[test]
fn a_run_that_is_driven_is_not_deleted() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("long", "touch $HOME/../begun; while ! test -e $HOME/../go; do sleep 0.05; done")]);
    let driver = repo.start(&["run", "r"]);
    wait_for("the worker runs", || repo.path("begun").exists());
    let refused = repo.env.handoff(["delete", "--yes", "r"]).exit(5);
    let (message, process) = find_line(&refused.stderr, "error: ").rsplit_once(' ').unwrap();
    assert_eq!(message, "error: the run \"r\" is being driven by process");
    assert_eq!(process, driver.id().to_string());
    repo.env.write("go", "");
    assert!(driver.wait().0.success());
    repo.env.handoff(["delete", "--yes", "r"]).success();
    assert_eq!(
        serde_json::from_str::<Value>(&repo.env.handoff(["runs", "--json"]).success()).unwrap()["runs"],
        json!([])
    );
}

#[test]
fn a_fetched_run_is_no_run_of_ours_to_delete() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "true")]).success();
    repo.env.git_in("", ["clone", "--quiet", "repo", "clone"]).success();
    repo.env.handoff_in("clone", ["fetch", "origin", "r"]).success();
    let refused = repo.env.handoff_in("clone", ["delete", "origin/r", "--yes"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"
    error: the run "origin/r" was fetched; only runs of this repository are deleted here
    hint: git update-ref -d refs/handoff/remotes/origin/runs/r   # after looking at it: git log refs/handoff/remotes/origin/runs/r
    "#);
    let listed = repo.env.handoff_in("clone", ["runs", "--all"]).success();
    insta::assert_snapshot!(listed, @"origin/r  default  sealed  2026-06-04 02:00Z  human:ada  1 done, 1 with nothing handed over");
}
