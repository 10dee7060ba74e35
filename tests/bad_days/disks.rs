//! Disks that are full or cannot be written to.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};

use super::mount::Mount;
use crate::common::repo::{Driver, TestRepo, after, item, wait_for};
use crate::common::report::find_line;
use crate::common::{Environment, Output};

fn on_a_small_disk(size: &str) -> Option<(Mount, TestRepo)> {
    let env = Environment::empty();
    let mount = Mount::tmpfs(size, &env.repo())?;
    let repo = TestRepo { env };
    repo.make(&[]);
    Some((mount, repo))
}

fn tells_of_the_disk(output: &Output) {
    assert!(output.stderr.contains("No space left on device"), "{output}");
    assert_eq!(
        find_line(&output.stderr, "hint: "),
        "hint: free some space, then run the same command again: the run continues where it stopped"
    );
}

/// Waits until a driver says that this machine lacks something, and returns the line.
#[track_caller]
fn waits(driver: &mut Driver) -> String {
    let line = |any_driver: &Driver| {
        let stderr = any_driver.stderr();
        stderr.lines().find(|line| line.starts_with("nothing more is started until this is over: ")).map(str::to_owned)
    };
    wait_for("a driver that waits for its machine", || driver.is_over() || line(driver).is_some());
    line(driver).unwrap_or_else(|| panic!("the driver ended: {}", driver.stderr()))
}

fn twice(id: &str, script: &str) -> Value {
    let mut item = item(id, script);
    item["maxAttempts"] = json!(3);
    item
}

#[test]
fn a_run_goes_on_when_there_is_space_again() {
    let Some((mount, repo)) = on_a_small_disk("4m") else { return };
    let fill = format!(
        "test $HANDOFF_ATTEMPT != 1 || cat /dev/zero >'{}' 2>/dev/null; echo x >outputs/x",
        mount.filler().display()
    );
    repo.submit(
        "r",
        &[item("done", "echo once >>\"$HOME/../once\""), twice("fills", &fill), after("last", &["fills"], "true")],
    );
    repo.config("handoff.queue.default.concurrency", "1");
    let mut driver = repo.start(&["run", "r"]);
    waits(&mut driver);
    driver.signal(Signal::INT);
    let (status, output) = driver.wait();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains("No space left on device"), "{output}");
    repo.is_quiet();
    // Work that found no space anywhere is not thrown away.
    let stays = |worktree: &PathBuf| {
        let worktree = worktree.display();
        format!("fills: the work of attempt 1 is not saved yet and stays in {worktree} until the run is driven again")
    };
    let is_reported = repo.worktrees().iter().any(|worktree| output.lines().any(|line| line == stays(worktree)));
    assert!(is_reported, "{output}");
    assert!(!repo.worktrees().is_empty());
    // While the disk is full, this is reported and nothing gets worse.
    let refs = repo.refs();
    tells_of_the_disk(&repo.env.handoff(["run", "r"]).exit(1));
    let plan = repo.plan("s", &[item("a", "true")]);
    tells_of_the_disk(&repo.env.handoff(["submit", &plan]).exit(1));
    assert_eq!(repo.refs(), refs);
    repo.is_quiet();
    mount.free();
    repo.env.handoff(["run"]).success();
    assert_eq!(repo.lines("once").len(), 1, "what is done is not done again");
    repo.is_clean();
    repo.is_intact("r");
    repo.env.handoff(["submit", "--run", &plan]).success();
}

#[test]
fn a_driver_waits_for_space_and_goes_on_by_itself() {
    let Some((mount, repo)) = on_a_small_disk("4m") else { return };
    let fill = format!(
        "test $HANDOFF_ATTEMPT != 1 || cat /dev/zero >'{}' 2>/dev/null; echo x >outputs/x",
        mount.filler().display()
    );
    repo.submit("r", &[item("done", "true"), item("fills", &fill), after("last", &["done"], "true")]);
    repo.config("handoff.queue.default.concurrency", "1");
    let mut driver = repo.start(&["run", "r"]);
    let line = waits(&mut driver);
    assert!(line.ends_with("; free some space, and the run goes on by itself (Ctrl-C ends it)"), "{line}");
    assert!(!driver.is_over());
    mount.free();
    let (status, output) = driver.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert_eq!(output.matches("nothing more is started").count(), 1, "{output}");
    assert!(output.contains("this machine can work again: the run goes on"), "{output}");
    // Each item has one attempt, and none was spent.
    let items = repo.items("r");
    assert!(items.values().all(|item| item.status == "done"), "{items:?}");
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn it_does_not_matter_which_write_finds_no_space() {
    let Some((mount, repo)) = on_a_small_disk("6m") else { return };
    let mut affected = 0;
    for pages in (0..24).step_by(2) {
        let run = format!("r{pages}");
        // A product that does not fit beside what is left.
        let script = "echo chatter; head -c 20000 /dev/urandom >outputs/x; echo x >>a.txt";
        mount.fill(pages * 4096);
        let plan = repo.plan(&run, &[item("a", script), after("b", &["a"], "true")]);
        let mut driver = repo.start(&["submit", "--run", &plan]);
        wait_for("a driver", || driver.is_over() || driver.stderr().contains("nothing more is started"));
        let is_waiting = !driver.is_over();
        mount.free();
        let (status, output) = driver.wait();
        assert!(!output.contains("changed while it was read"), "{output}");
        if status.code() != Some(0) {
            // Nothing was begun.
            assert!(status.code() == Some(1) && !is_waiting && output.contains("No space left on device"), "{output}");
            repo.is_quiet();
        }
        affected += usize::from(is_waiting || status.code() != Some(0));
        repo.env.handoff(["submit", &plan]).success();
        repo.env.handoff(["run", &run]).success();
        repo.is_clean();
        repo.is_intact(&run);
    }
    assert!(affected > 3, "the disk was hardly ever full");
}

#[test]
fn a_driver_without_free_file_descriptors_waits_and_spends_no_attempt() {
    let repo = TestRepo::new();
    let waits_for = "until test -e \"$HOME/../go\"; do sleep 0.02; done; echo x >outputs/x";
    repo.submit("r", &[item("a", waits_for), item("b", waits_for), after("c", &["a", "b"], "true")]);
    let mut driver = repo.start(&["run", "r", "-j", "2"]);
    wait_for("two workers", || repo.items("r").values().filter(|item| item.status == "running").count() == 2);
    let pid = Pid::from_raw(i32::try_from(driver.id()).unwrap());
    let maximum = getrlimit(Resource::Nofile).maximum;
    let before = prlimit(pid, Resource::Nofile, Rlimit { current: Some(3), maximum }).unwrap();
    repo.env.write("go", "");
    let line = waits(&mut driver);
    assert!(line.contains("no-files: no more files can be opened (the limit is 3)"), "{line}");
    assert!(line.contains("; raise the limit with `ulimit -n`, or run fewer items at once with `-j`, and"), "{line}");
    prlimit(pid, Resource::Nofile, before).unwrap();
    let (status, output) = driver.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    let items = repo.items("r");
    assert!(items.values().all(|item| item.status == "done"), "{items:?}");
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn failed_pack_leaves_no_keep_file() {
    let Some((mount, repo)) = on_a_small_disk("4m") else { return };
    let store = git_handoff::git::store::Store::discover(&repo.env.repo()).unwrap();
    let (mut refused, mut accepted) = (0, 0);
    // Linux counts the free pages of such a disk in portions, so it may have fewer than that.
    for pages in (0..8).chain([16, 32, 64, 128]) {
        let mut batch = store.batch();
        batch.write_blob(format!("{pages}").as_bytes()).unwrap();
        mount.fill(pages * 4096);
        let result = batch.keep();
        mount.free();
        *(if result.is_ok() { &mut accepted } else { &mut refused }) += 1;
        drop(result);
        let left = fs::read_dir(repo.env.repo().join(".git/objects/pack")).unwrap();
        let left = left.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "keep"));
        assert_eq!(left.collect::<Vec<_>>(), Vec::<PathBuf>::new(), "with {pages} pages");
    }
    assert!(refused > 1 && accepted > 0, "{refused} were refused, {accepted} taken");
}

#[test]
fn a_full_disk_under_the_worktrees_stops_the_run_and_spends_no_attempt() {
    let repo = TestRepo::new();
    let Some(mount) = Mount::tmpfs("2m", &repo.path("worktrees")) else { return };
    mount.fill(0);
    repo.submit("r", &[item("a", "echo x >outputs/x"), item("b", "echo x >outputs/x")]);
    // However often it is tried meanwhile: the item has one attempt.
    for _ in 0..3 {
        let mut driver = repo.start(&["run", "r"]);
        let line = waits(&mut driver);
        let parts: Vec<&str> = line.split(": ").collect();
        assert_eq!([parts[1], parts[3]], ["no-space", "the worktree could not be made"], "{line}");
        let folder = format!("no space is left on the file system of {}/", repo.path("worktrees").display());
        assert!(parts[2].starts_with(&folder), "{line}");
        driver.signal(Signal::TERM);
        let (status, output) = driver.wait();
        assert_eq!(status.code(), Some(130), "{output}");
        let stopped_item = repo.item("r", "a");
        let expected_reason = "no-space: no space is left on the file system of $TEST/worktrees/";
        assert!(
            stopped_item.status == "ready" && stopped_item.reason.starts_with(expected_reason),
            "{} {}",
            stopped_item.status,
            stopped_item.reason
        );
    }
    let mut driver = repo.start(&["run", "r"]);
    waits(&mut driver);
    mount.free();
    let (status, output) = driver.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    repo.is_clean();
    assert_eq!(repo.item("r", "a").status, "done");
    repo.is_intact("r");
    // An executor that fills the disk by what it writes, or by what it says; the other one is done
    // by then, since it needs some, too.
    for (run, script) in [("files", "cat /dev/zero >big"), ("words", "yes")] {
        let waits = format!("until test -e \"$HOME/../{run}.full\"; do sleep 0.02; done; {script}");
        repo.submit(run, &[item("a", &waits), item("b", "true")]);
        let run_driver = repo.start(&["run", run]);
        wait_for("the other item", || repo.item(run, "b").status == "done");
        repo.env.write(&format!("{run}.full"), "");
        let (driver_status, driver_output) = run_driver.wait();
        assert_eq!(driver_status.code(), Some(4), "{driver_output}");
        // Files that fit nowhere else stay.
        if run == "files" {
            repo.env.handoff(["clean", "--force", "--discard"]).success();
        }
        let items = repo.items(run);
        assert_eq!((items["a"].status.as_str(), items["b"].status.as_str()), ("failed", "done"), "{items:?}");
        repo.is_clean();
        repo.ends_intact(run);
    }
}

#[test]
fn an_attempt_that_fills_the_disk_unseen_is_ended_before_it_is_full() {
    let repo = TestRepo::new();
    let Some(mount) = Mount::tmpfs("200m", &repo.path("worktrees")) else { return };
    // A fiftieth of it is to stay free. A mapped file without a name is not counted for `maxDisk`.
    mount.fill(60 << 20);
    let hidden = "import mmap, os, time
maps = []
for i in range(100):
    file = os.open('x', os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(1 << 20))
    maps.append(mmap.mmap(file, 4096))
    os.unlink('x')
    os.close(file)
    time.sleep(0.1)
time.sleep(100)
";
    repo.env.write("hidden.py", hidden);
    let hides = format!("exec python3 {}", repo.path("hidden.py").display());
    repo.drive("hides", &[item("a", &hides)]).ends(4);
    assert_eq!(repo.item("hides", "a").reason, "left less than 4194304 bytes of the disk free");
    repo.is_clean();
    repo.ends_intact("hides");
    // An attempt that finds less is not to blame for it.
    mount.fill(3 << 20);
    repo.drive("finds", &[item("a", "sleep 0.5; echo x >outputs/x")]).ends(0);
    assert_eq!(repo.item("finds", "a").status, "done");
}

#[test]
fn read_only_repository_is_reported_and_unchanged() {
    let repo = TestRepo::new();
    repo.drive("sealed", &[item("a", "true")]).success();
    repo.submit("open", &[item("a", "true")]);
    let plan = repo.plan("new", &[item("a", "true")]);
    let folder = repo.env.repo();
    let Some(mount) = Mount::new(&["--bind", folder.to_str().unwrap()], &folder) else { return };
    mount.remount("ro");
    for arguments in [&["run", "open"][..], &["run"], &["submit", &plan], &["cancel", "open"], &["cancel", "open/a"]] {
        let output = repo.env.handoff(arguments).exit(1);
        assert!(output.stderr.contains("Read-only file system"), "{arguments:?} {output}");
    }
    repo.env.handoff(["status", "open"]).success();
    repo.env.handoff(["log", "sealed"]).success();
    // A report is written elsewhere, with the logs as they are.
    let report = repo.env.handoff(["report", "sealed", "-o", "../report.html"]).exit(0);
    let warning = "warning: $TEST/repo/.git cannot be written (Read-only file system (os error 30)): the logs go along as they are";
    assert!(report.stderr.lines().any(|line| line == warning), "{report}");
    assert!(fs::read_to_string(repo.path("report.html")).unwrap().contains("sealed"));
    let doctor = repo.env.handoff(["--json", "doctor"]).exit(3);
    let findings: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let found = findings["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == "not-writable");
    assert_eq!(
        found.unwrap()["message"],
        "$TEST/repo/.git cannot be written: Read-only file system (os error 30)",
        "{doctor}"
    );
    repo.is_intact("sealed");
    repo.is_clean();
    mount.remount("rw");
    assert!(!repo.env.handoff(["doctor"]).exit(0).stdout.contains("cannot be written"));
    repo.env.handoff(["run"]).success();
    repo.is_intact("open");
}

#[test]
fn unwritable_cache_is_reported() {
    let repo = TestRepo::new();
    repo.env.write("file", "");
    let below_a_file = repo.path("file/cache");
    repo.config("handoff.workspace.root", below_a_file.to_str().unwrap());
    let output = repo.drive("r", &[item("a", "true")]);
    assert!(output.stdout.contains("Not a directory") || output.stderr.contains("Not a directory"), "{output}");
    assert!(matches!(output.status, Some(1 | 4)), "{output}");
    repo.env.git(["config", "--unset", "handoff.workspace.root"]).success();
    if repo.item("r", "a").status == "failed" {
        repo.env.handoff(["retry", "r/a"]).success();
    }
    repo.env.handoff(["run", "r"]).success();
    repo.is_clean();
    repo.is_intact("r");
}
