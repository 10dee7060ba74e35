//! Processes that can still reach a worktree after its worker ended, through passed file
//! descriptors.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use git_handoff::worker::host::Host;
use git_handoff::worker::workspace::{Held, Workspace};

use super::harness::{Repo, item, run};
use super::pool::{host, identity, is_pooled, skipped};
use crate::common::alone;

/// Makes a worktree whose worker can meet others.
fn meeting(repo: &Repo, host: &Host, attempt: u32) -> Workspace {
    let mut workspace = Workspace::create(host, &run(), &item("edit/a"), attempt, repo.head()).unwrap();
    workspace.meet(host);
    workspace
}

/// Ends an attempt; returns whether its folder is kept.
fn ends(workspace: Workspace, host: &Host) -> bool {
    workspace.part();
    workspace.recycle(host).map_err(|workspace| workspace.remove().unwrap()).is_ok()
}

#[test]
fn a_folder_waits_until_nobody_is_left_who_can_have_a_handle_of_it() {
    if !is_pooled() {
        return;
    }
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    let [first, second] = [1, 2].map(|attempt| meeting(&repo, &host, attempt));
    let mut handle = OpenOptions::new().write(true).open(first.tree().join("a.txt")).unwrap();
    let spent = [identity(&first), identity(&second)];
    assert!(ends(first, &host));
    // It lives while the second does, which may have it from the first; and hands it on to the
    // third.
    let third = meeting(&repo, &host, 3);
    handle.write_all(b"evil").unwrap();
    assert_eq!(fs::read_to_string(third.tree().join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert!(!spent.contains(&identity(&third)));
    assert!(ends(second, &host));
    let fourth = meeting(&repo, &host, 4);
    assert!(!spent.contains(&identity(&fourth)));
    let last = identity(&fourth);
    ends(third, &host);
    assert!(ends(fourth, &host));
    let again = [5, 6, 7].map(|attempt| identity(&meeting(&repo, &host, attempt)));
    assert_eq!(BTreeSet::from(again), BTreeSet::from([spent[0], spent[1], last]));
}

#[test]
fn who_meets_nobody_gets_and_leaves_folders_at_once() {
    if !is_pooled() {
        return;
    }
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    let other = meeting(&repo, &host, 1);
    let alone = Workspace::create(&host, &run(), &item("edit/a"), 2, repo.head()).unwrap();
    let spent = identity(&alone);
    assert!(!alone.could_meet() && ends(alone, &host));
    assert_eq!(identity(&meeting(&repo, &host, 3)), spent);
    drop(other);
}

#[test]
fn other_drivers_and_what_could_not_be_ended_count_as_well() {
    if !is_pooled() {
        return;
    }
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    // With worktrees, and a pool, of its own.
    let elsewhere = repo.host();
    assert_eq!((elsewhere.root != host.root, &elsewhere.meeting), (true, &host.meeting));
    let theirs = meeting(&repo, &elsewhere, 1);
    let ours = meeting(&repo, &host, 1);
    let spent = identity(&ours);
    assert!(ends(ours, &host));
    assert_ne!(identity(&Workspace::create(&host, &run(), &item("edit/a"), 2, repo.head()).unwrap()), spent);
    theirs.part();
    let again = meeting(&repo, &host, 3);
    assert_eq!(identity(&again), spent);
    // The remains of this one are unknown, and for how long.
    let lost = meeting(&repo, &host, 4);
    lost.doubt();
    lost.part();
    assert!(ends(again, &host));
    assert_ne!(identity(&meeting(&repo, &host, 5)), spent);
    assert!(!ends(lost, &host));
}

#[test]
fn no_more_folders_wait_than_can_be_needed() {
    if !is_pooled() {
        return;
    }
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    let lasting = meeting(&repo, &host, 1);
    let kept = (2..7).filter(|attempt| ends(meeting(&repo, &host, *attempt), &host)).count();
    assert_eq!(kept, 2);
    assert!(ends(lasting, &host));
}

/// A process that was passed a file of a worktree, by a script in Python.
struct Holder(Child);

impl Holder {
    fn new(folder: &Path, script: &str) -> Self {
        let script = format!(
            "import mmap, os, socket, sys\nf = os.open('a.txt', os.O_RDWR)\n{script}\nprint('held', flush=True)\nsys.stdin.read()"
        );
        let mut command = Command::new("python3");
        command.args(["-c", &script]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
        assert_eq!(&said, b"held\n");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn holder(workspace: &Workspace) -> String {
    match workspace.held() {
        Held::Somebody(path, why) => format!("{} {why}", path.display()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_that_others_have_open_is_found_however_they_hide_it() {
    // Whatever else starts programs in this process hands them, for a moment, what we look at.
    if !alone("worker::company::a_file_that_others_have_open_is_found_however_they_hide_it") {
        return;
    }
    let repo = Repo::new("sha1");
    let host = repo.host();
    let workspace = repo.workspace(&host);
    if let Held::Untold(error) = workspace.held() {
        return skipped(&format!("files that others have open, for this file system does not tell: {error}"));
    }
    repo.script(
        &workspace,
        "echo more >>a.txt; mkdir -p new; ln a.txt new/b; mkfifo pipe; ln -s pipe to; echo x >.git/x",
    );
    let in_git = File::open(workspace.tree().join(".git/x")).unwrap();
    assert!(matches!(workspace.held(), Held::Nobody));
    drop(in_git);
    for script in [
        "",
        "os.close(f); f = os.open('a.txt', os.O_RDONLY)",
        "m = mmap.mmap(f, 4); os.close(f)",
        "a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [f]); os.close(f)",
        "os.close(f); f = os.open('new/b', os.O_WRONLY | os.O_APPEND)",
    ] {
        let process = Holder::new(&workspace.tree(), script);
        assert!(holder(&workspace).ends_with("is still open in a process outside of the attempt"), "{script}");
        drop(process);
        assert!(matches!(workspace.held(), Held::Nobody), "{script}");
    }
    // A reader is waited for.
    let looking = File::open(workspace.tree().join("dir/b.txt")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            drop(looking);
        });
        assert!(matches!(workspace.held(), Held::Nobody));
    });
}

#[test]
fn a_name_of_a_file_elsewhere_is_as_good_as_a_handle() {
    let repo = Repo::new("sha1");
    let (mut host, _dir) = host(&repo);
    host.private = host.root.join("own");
    let workspace = Workspace::create(&host, &run(), &item("edit/a"), 1, repo.head()).unwrap();
    if let Held::Untold(error) = workspace.held() {
        return skipped(&format!("names elsewhere, for this file system does not tell: {error}"));
    }
    fs::hard_link(workspace.tree().join("a.txt"), workspace.tmp().join("own")).unwrap();
    fs::hard_link(workspace.tree().join("run.sh"), workspace.private().join("own")).unwrap();
    assert!(matches!(workspace.held(), Held::Nobody));
    fs::hard_link(workspace.tree().join("dir/b.txt"), host.root.join("shared")).unwrap();
    assert_eq!(holder(&workspace), "dir/b.txt has a name outside of the worktree as well");
    fs::remove_file(host.root.join("shared")).unwrap();
    assert!(matches!(workspace.held(), Held::Nobody));
}
