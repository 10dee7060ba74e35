//! The last worker's files are gone when its worktree is reused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::SystemTime;

use git_handoff::worktree::capture::capture;
use git_handoff::worktree::host::Host;
use git_handoff::worktree::workspace::Workspace;

use crate::worker::harness::{FORMATS, Repo, item, run};

/// Everything that a worker can tell of a folder: kinds, modes, owners, number of links, content,
/// but for times and numbers.
fn look(dir: &Path) -> BTreeMap<String, String> {
    let mut entries = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            let content = if meta.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if meta.is_dir() {
                folders.push(path.clone());
                String::new()
            } else if name == "index" || name == "tree/.git/index" {
                // It names times and numbers of files; git tells below whether it is right.
                String::new()
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            };
            let links = if meta.is_dir() { 0 } else { meta.nlink() };
            entries.insert(name, format!("{:o} {}:{} {links} {content}", meta.mode(), meta.uid(), meta.gid()));
        }
    }
    entries
}

/// Tells a folder from another that was made after it was gone, which may be given the same number.
type Identity = (u64, Option<SystemTime>);

pub(super) fn identity(workspace: &Workspace) -> Identity {
    let meta = fs::metadata(workspace.tree()).unwrap();
    (meta.ino(), meta.created().ok())
}

/// The next attempt after one in which a script ran, and the folder that the script had.
fn next(repo: &Repo, host: &Host, script: &str, number: u32) -> (Workspace, Identity) {
    let workspace = Workspace::create(host, &run(), &item("edit/a"), number, repo.head()).unwrap();
    workspace.mark_started().unwrap();
    fs::write(workspace.task(), "task").unwrap();
    let spent = identity(&workspace);
    // A folder of the worker's own beside its worktree, which nothing confines it to.
    repo.script(&workspace, &format!("mkdir ../tmp; {script}"));
    // An unusable worktree is removed, as the driver does.
    if let Err(workspace) = workspace.recycle(host) {
        workspace.remove().unwrap();
    }
    (Workspace::create(host, &run(), &item("edit/a"), number + 1, repo.head()).unwrap(), spent)
}

/// A host on the file system that the tests were built on: where the others are, the time of change
/// does not tell of all.
pub(super) fn host(repo: &Repo) -> (Host, tempfile::TempDir) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut host = repo.host();
    host.settings.root = dir.path().join("cache");
    (host, dir)
}

#[expect(clippy::print_stderr, reason = "what is not tested is said aloud")]
pub(super) fn skipped(what: &str) {
    eprintln!("skipped: {what}");
}

/// Whether worktrees are used again on the file system that the tests are on.
pub(super) fn is_pooled() -> bool {
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    let (workspace, spent) = next(&repo, &host, "true", 1);
    let reused = identity(&workspace) == spent;
    if !reused {
        skipped("worktrees are not used again on this file system, and the tests show less");
    }
    reused
}

/// Remains of a hostile worker, and whether the worktree can be reused.
const LEFTOVERS: &[(&str, &str)] = &[
    ("nothing", "true"),
    ("untracked files", "echo x >new; mkdir -p a/b/c; echo x >a/b/c/d; echo x >dir/deep/new"),
    ("ignored files", "echo x >x.log; mkdir target; echo x >target/x"),
    ("empty folders", "mkdir -p void/of/all dir/void"),
    ("changed content", "echo four >>a.txt; echo >dir/b.txt"),
    (
        "the same size and the same times",
        "touch -r a.txt ../tmp/t; echo ONE >../tmp/n; dd if=../tmp/n of=a.txt conv=notrunc 2>/dev/null; touch -r ../tmp/t a.txt",
    ),
    (
        "a file replaced by one of equal size and times",
        "cp -p a.txt n; sed -i s/one/ONE/ n; touch -r a.txt n; mv n a.txt",
    ),
    ("deleted files", "rm a.txt dir/deep/c.bin link"),
    (
        "a file for a folder and a folder for a file",
        "rm a.txt; mkdir a.txt; echo x >a.txt/x; rm -r dir/deep; echo x >dir/deep",
    ),
    ("a folder replaced by a link", "mv dir ../tmp/dir; ln -s ../tmp/dir dir"),
    ("a folder replaced by its like", "cp -a dir dir2; rm -r dir; mv dir2 dir; echo evil >dir/b.txt"),
    ("a link that leads elsewhere", "ln -sfn /etc/passwd link"),
    ("a file replaced by a link", "ln -sf /etc/passwd a.txt"),
    ("a hard link of a tracked file", "ln a.txt ../tmp/kept; ln a.txt ../../../kept"),
    ("a hard link in place of a tracked file", "echo x >../../../mine; ln -f ../../../mine a.txt"),
    ("a hard link that is gone again", "ln a.txt n; rm n"),
    ("modes of files", "chmod 777 a.txt; chmod 4755 run.sh; chmod 0 empty"),
    ("modes of folders", "chmod 777 dir; chmod 1777 .; chmod 2755 dir/deep"),
    ("folders that cannot be read", "chmod 0 dir/deep dir"),
    (
        "an index that lies",
        "git update-index --skip-worktree a.txt; git update-index --assume-unchanged dir/b.txt; echo evil >a.txt; echo evil >dir/b.txt",
    ),
    (
        "a nested repository",
        "git init -q nested; git -C nested -c user.name=x -c user.email=x@x commit -q --allow-empty -m x; git init -q dir/deep",
    ),
    ("a sparse checkout", "git sparse-checkout set dir; test ! -e run.sh || rm run.sh"),
    (
        "commits, branches, tags, notes and a stash",
        "echo x >>a.txt; git commit -qam x; git tag t; git branch b; git notes add -m n; echo y >>a.txt; git stash -q",
    ),
    ("a changed configuration", "git config core.fsmonitor \"touch $CANARY\"; git config core.hooksPath /tmp"),
    (
        "hooks",
        "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch $CANARY\\n' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
    ),
    ("other alternates", "echo /tmp >.git/objects/info/alternates; echo '* filter=x' >.git/info/attributes"),
    ("a .git that is a file", "mv .git ../tmp/git; echo 'gitdir: ../tmp/git' >.git"),
    ("a .git that is a link", "mv .git ../tmp/git; ln -s ../tmp/git .git"),
    (
        "attributes and ignore rules",
        "echo '* text eol=crlf' >>.gitattributes; echo '*' >.gitignore; echo '*' >dir/.gitignore",
    ),
    ("names that differ by case", "mv a.txt A.TXT; mv dir DIR"),
    ("pipes and sockets", "mkfifo pipe dir/pipe; rm a.txt; mkfifo a.txt"),
    ("inputs and outputs", "echo x >inputs/x; mkdir -p outputs/deep; echo x >outputs/deep/y; rmdir ../tmp"),
    ("links for our folders", "rmdir outputs; ln -s /tmp outputs"),
    (
        "files beside the worktree",
        "echo '{}' >../result.json; echo x >../task.json; echo x >../index; echo x >../new; echo x >../tmp/x",
    ),
    ("names that no text is", "touch \"$(printf 'x\\377\\nx')\" -- -rf"),
    ("a deep tree", "d=.; for i in $(seq 60); do d=$d/d; done; mkdir -p $d; echo x >$d/x"),
];

#[test]
fn reused_worktree_is_clean() {
    let pooled = is_pooled();
    for format in FORMATS {
        let repo = Repo::new(format);
        let (first, _dir) = host(&repo);
        let fresh = Workspace::create(&first, &run(), &item("fresh"), 1, repo.head()).unwrap();
        let expected = look(&fresh.dir);
        let listed = repo.git_in(&fresh.tree(), &["ls-files", "-v"]);
        fresh.remove().unwrap();
        let mut number = 1;
        for (what, script) in LEFTOVERS {
            // Twice, so that what was mended once is looked at again.
            let (host, _host_dir) = host(&repo);
            let (workspace, spent) = next(&repo, &host, script, number);
            assert_eq!(look(&workspace.dir), expected, "{what}");
            assert_eq!(repo.git_in(&workspace.tree(), &["status", "--porcelain", "--ignored"]), "", "{what}");
            assert_eq!(repo.git_in(&workspace.tree(), &["ls-files", "-v"]), listed, "{what}");
            assert_eq!(repo.git_in(&workspace.tree(), &["for-each-ref"]), repo.git(&["for-each-ref"]), "{what}");
            workspace.mark_started().unwrap();
            assert!(capture(&workspace, &host).unwrap().patch.is_none(), "{what}");
            let again = identity(&workspace) == spent;
            assert!(pooled || !again, "{what}");
            repo.script(&workspace, "echo more >>a.txt; rm dir/b.txt; echo x >new");
            let patch = capture(&workspace, &host).unwrap().patch.expect("there is a change");
            workspace.recycle(&host).unwrap_or_else(|workspace| workspace.remove().unwrap());
            let second_workspace = Workspace::create(&host, &run(), &item("edit/a"), number + 2, repo.head()).unwrap();
            assert_eq!(look(&second_workspace.dir), expected, "{what}, the third time");
            repo.script(&second_workspace, "echo more >>a.txt; rm dir/b.txt; echo x >new");
            assert_eq!(capture(&second_workspace, &host).unwrap().patch, Some(patch), "{what}");
            second_workspace.remove().unwrap();
            assert!(!repo.canary().exists(), "{what}");
            number += 3;
        }
    }
}

#[test]
fn open_file_of_a_process_reaches_no_later_worktree() {
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    let (workspace, _) = next(&repo, &host, "ln a.txt ../../../kept; ln run.sh outputs/kept", 1);
    fs::write(host.settings.root.join("kept"), "evil").unwrap();
    assert_eq!(fs::read_to_string(workspace.tree().join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(fs::metadata(workspace.tree().join("run.sh")).unwrap().nlink(), 1);
}

#[test]
fn worktrees_of_attempts_that_began_at_once_are_used_again_all_of_them() {
    if !is_pooled() {
        return;
    }
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    let begin = Barrier::new(4);
    let create = |number| Workspace::create(&host, &run(), &item("edit/a"), number, repo.head()).unwrap();
    let first: Vec<Workspace> = thread::scope(|scope| {
        let begins = |number| {
            scope.spawn({
                let (begin, create) = (&begin, &create);
                move || {
                    begin.wait();
                    create(number)
                }
            })
        };
        let threads = [1, 2, 3, 4].map(begins);
        threads.map(|thread| thread.join().unwrap()).into()
    });
    let spent: BTreeSet<Identity> = first.iter().map(identity).collect();
    first.into_iter().for_each(|workspace| assert!(workspace.recycle(&host).is_ok()));
    let again: Vec<Workspace> = [5, 6, 7, 8].map(create).into();
    assert_eq!(again.iter().map(identity).collect::<BTreeSet<_>>(), spent);
}

#[test]
fn harmless_work_does_not_cost_the_worktree() {
    if !is_pooled() {
        return;
    }
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    for (number, script) in
        ["true", "echo x >>a.txt; echo x >new; mkdir -p target; rm run.sh; git commit -qam x", "git status"]
            .into_iter()
            .enumerate()
    {
        let number = u32::try_from(number).unwrap() * 2 + 1;
        let (workspace, spent) = next(&repo, &host, script, number);
        assert_eq!(identity(&workspace), spent, "{script}");
        workspace.recycle(&host).unwrap();
    }
}

#[test]
fn flags_and_access_lists_go_with_the_folder() {
    let repo = Repo::new("sha1");
    let shell = |dir: &Path, script: &str| {
        let output = std::process::Command::new("sh").args(["-c", script]).current_dir(dir).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for (script, look) in [
        ("setfattr -n user.x -v evil a.txt dir", "getfattr -d a.txt dir"),
        ("setfacl -m u:65534:rwx a.txt; setfacl -d -m u:65534:rwx dir", "getfacl -n a.txt dir"),
        ("chattr +d a.txt dir", "lsattr -d a.txt dir"),
    ] {
        let (host, dir) = host(&repo);
        fs::create_dir(dir.path().join("dir")).unwrap();
        fs::write(dir.path().join("a.txt"), "").unwrap();
        let able = shell(dir.path(), script).0;
        shell(dir.path(), "chattr -d a.txt dir");
        if !able {
            skipped(&format!("{script}, for want of the program, the right or the file system"));
            continue;
        }
        let fresh = Workspace::create(&host, &run(), &item("fresh"), 1, repo.head()).unwrap();
        let expected = shell(&fresh.tree(), look);
        let (workspace, _) = next(&repo, &host, script, 1);
        assert_eq!(shell(&workspace.tree(), look), expected, "{script}");
        workspace.remove().unwrap();
    }
}

#[test]
fn a_pool_ends_with_its_driver_and_is_swept_after_one_that_died() {
    if !is_pooled() {
        return;
    }
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    let pools = host.settings.root.join("@pool");
    let (workspace, _) = next(&repo, &host, "true", 1);
    workspace.recycle(&host).unwrap();
    assert_eq!(fs::read_dir(&pools).unwrap().count(), 1);
    // Another driver leaves a living one's alone.
    let mut other = repo.host();
    other.settings.root.clone_from(&host.settings.root);
    other.prepare(repo.head()).unwrap();
    assert_eq!(fs::read_dir(&pools).unwrap().count(), 1);
    host.clear_pool().unwrap();
    assert!(!pools.exists());
    fs::create_dir_all(pools.join("dead/0/tree")).unwrap();
    fs::set_permissions(pools.join("dead/0"), fs::Permissions::from_mode(0o500)).unwrap();
    other.prepare(repo.head()).unwrap();
    assert_eq!(fs::read_dir(&pools).unwrap().count(), 0);
}

#[test]
fn spent_worktrees_give_way_to_the_cap_and_nothing_else_does() {
    if !is_pooled() {
        return;
    }
    let repo = Repo::new("sha1");
    let (mut host, _dir) = host(&repo);
    let [one, two] = [1, 2].map(|n| Workspace::create(&host, &run(), &item("edit/a"), n, repo.head()).unwrap());
    let live = Workspace::create(&host, &run(), &item("edit/a"), 3, repo.head()).unwrap();
    let spent = [one, two].map(|workspace| {
        let spent = identity(&workspace);
        workspace.recycle(&host).unwrap();
        spent
    });
    assert_eq!(host.bound().unwrap(), None);
    // Room for two of the three.
    host.cap = git_handoff::process::disk::size(&host.settings.root, 0) - 1;
    assert_eq!(host.bound().unwrap(), None);
    let next = Workspace::create(&host, &run(), &item("edit/a"), 4, repo.head()).unwrap();
    assert_eq!(identity(&next), spent[1], "the oldest goes first");
    host.cap = 1;
    assert!(host.bound().unwrap().is_some_and(|used| used > 1));
    assert!(live.tree().exists() && next.tree().exists());
}

#[test]
fn another_base_and_another_configuration_get_a_worktree_of_their_own() {
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    let (workspace, spent) = next(&repo, &host, "true", 1);
    // On some file systems none is used again.
    workspace.recycle(&host).unwrap_or_else(|workspace| workspace.remove().unwrap());
    repo.write("a.txt", "other\n");
    repo.commit();
    let other = Workspace::create(&host, &run(), &item("edit/a"), 5, repo.head()).unwrap();
    assert_ne!(identity(&other), spent);
    assert_eq!(fs::read_to_string(other.tree().join("a.txt")).unwrap(), "other\n");
}

#[test]
fn attempts_that_end_while_others_begin_cost_none() {
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    let head = repo.head();
    std::thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let host = &host;
            scope.spawn(move || {
                for attempt in 1..=100 {
                    let made = Workspace::create(host, &run(), &item(name), attempt, head);
                    made.unwrap().remove().unwrap();
                }
            });
        }
    });
    host.leave(&run()).unwrap();
    assert!(!host.settings.root.join(run().encoded()).exists());
}

/// Gives `a.txt` the blocks of another file, as programs that put blocks in order do on ext4: no
/// time of it changes.
const KEEPS_TIMES: &str = "python3 -c 'import fcntl, os, struct, time
file, other = os.open(\"a.txt\", os.O_RDWR), os.open(\"../other\", os.O_RDWR | os.O_CREAT)
os.write(other, b\"evil\" * 1024)
os.fsync(file); os.fsync(other)
for again in range(50):
    try: fcntl.ioctl(other, 0xC028660F, struct.pack(\"IIQQQQ\", 0, file, 0, 0, 1, 0)); break
    except OSError: time.sleep(0.01)
else: raise SystemExit(1)
os.fsync(other); os.fsync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)' 2>/dev/null";

#[test]
fn a_worktree_whose_worker_can_meet_others_is_not_used_again() {
    let repo = Repo::new("sha1");
    repo.write(".gitignore", "linked\n");
    fs::create_dir(repo.path.join("linked")).unwrap();
    let (host, _dir) = host(&repo);
    let mut linking = repo.host();
    linking.settings.root = host.settings.root.with_file_name("linking");
    linking.settings.link = vec!["linked".to_owned()];
    for variant in [host.reusing(false), linking] {
        let workspace = Workspace::create(&variant, &run(), &item("edit/a"), 1, repo.head()).unwrap();
        let spent = identity(&workspace);
        workspace.recycle(&variant).unwrap_err().remove().unwrap();
        let next = Workspace::create(&variant, &run(), &item("edit/a"), 2, repo.head()).unwrap();
        assert_ne!(identity(&next), spent);
        next.remove().unwrap();
    }
}

#[test]
fn where_times_do_not_tell_everything_is_looked_at_and_nothing_is_used_again() {
    let repo = Repo::new("sha1");
    let (host, _dir) = host(&repo);
    let mut workspace = Workspace::create(&host, &run(), &item("edit/a"), 1, repo.head()).unwrap();
    let spent = identity(&workspace);
    workspace.distrust_times();
    assert!(capture(&workspace, &host).unwrap().patch.is_none());
    repo.script(&workspace, &format!("{KEEPS_TIMES} || echo evil >a.txt"));
    assert_ne!(fs::read_to_string(workspace.tree().join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert!(capture(&workspace, &host).unwrap().patch.is_some());
    workspace.recycle(&host).unwrap_err().remove().unwrap();
    let next = Workspace::create(&host, &run(), &item("edit/a"), 2, repo.head()).unwrap();
    assert_ne!(identity(&next), spent);
    assert_eq!(fs::read_to_string(next.tree().join("a.txt")).unwrap(), "one\ntwo\nthree\n");
}
