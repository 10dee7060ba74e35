//! The worktree of a worker, and its removal.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use git_handoff::model::digest::Digest;
use git_handoff::model::name::FilePath;
use git_handoff::worktree::host::Host;
use git_handoff::worktree::inputs::stage;
use git_handoff::worktree::workspace::{Error, Workspace};

use crate::worker::harness::{FORMATS, Repo, item, run};

#[test]
fn a_worktree_is_what_git_checks_out() {
    for format in FORMATS {
        let repo = Repo::new(format);
        let workspace = repo.workspace(&repo.host());
        let tree = workspace.tree();
        for path in ["a.txt", "dir/b.txt", "dir/deep/c.bin", "crlf.txt", "empty", "some.win"] {
            assert_eq!(fs::read(tree.join(path)).unwrap(), fs::read(repo.path.join(path)).unwrap(), "{path}");
        }
        assert_eq!(fs::read(tree.join("some.win")).unwrap(), b"w\r\n");
        assert_eq!(fs::read_link(tree.join("link")).unwrap().to_str(), Some("a.txt"));
        assert_ne!(fs::metadata(tree.join("run.sh")).unwrap().permissions().mode() & 0o111, 0);
        assert!(workspace.inputs().is_dir() && workspace.outputs().is_dir() && workspace.tmp().is_dir());
        assert_eq!(repo.git_in(&tree, &["status", "--porcelain"]), "");
        assert_eq!(repo.git_in(&tree, &["rev-parse", "HEAD"]), repo.head().to_string());
        assert_eq!(repo.git_in(&tree, &["rev-parse", "--abbrev-ref", "HEAD"]), "main");
        assert_eq!(repo.git_in(&tree, &["log", "--format=%s"]), "base");
    }
}

#[test]
fn a_worker_commits_and_branches_for_itself() {
    for format in FORMATS {
        let repo = Repo::new(format);
        let workspace = repo.workspace(&repo.host());
        let before = repo.git(&["for-each-ref"]);
        repo.script(
            &workspace,
            "git checkout -qb topic; echo x >>a.txt; git commit -qam change; git stash list
             echo y >>a.txt; git stash; git stash pop; git tag mine; git commit -qam more; git gc -q; git fsck --strict
             test \"$(git log -1 --format='%an <%ae>')\" = 'Worker \"W\" X <w@example.com>'",
        );
        assert_eq!(repo.git(&["for-each-ref"]), before);
        assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
        repo.git(&["fsck", "--strict"]);
        repo.git(&["gc", "-q", "--prune=now"]);
        repo.git(&["rev-list", "--all"]);
        workspace.remove().unwrap();
    }
}

#[test]
fn local_settings_and_filters_hold_in_the_worktree() {
    let repo = Repo::new("sha1");
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
    repo.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
    repo.write(".git/info/attributes", "a.txt filter=up\n");
    repo.write(".git/info/exclude", "*.private");
    let workspace = repo.workspace(&repo.host());
    assert_eq!(fs::read(workspace.tree().join("a.txt")).unwrap(), b"ONE\r\nTWO\r\nTHREE\r\n");
    repo.script(&workspace, "echo >x.private; echo >inputs/x; echo >outputs/y; test -z \"$(git status --porcelain)\"");
}

#[test]
fn a_submodule_is_a_folder_with_an_empty_repository() {
    let repo = Repo::new("sha1");
    let head = repo.head().to_string();
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},libs/sub")]);
    repo.git(&["commit", "-qm", "sub"]);
    let workspace = repo.workspace(&repo.host());
    let sub = workspace.tree().join("libs/sub");
    assert_eq!(fs::read_dir(&sub).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), [".git"]);
    assert_eq!(repo.git_in(&sub, &["for-each-ref"]), "");
    assert_eq!(repo.git_in(&workspace.tree(), &["status", "--porcelain"]), "");
}

#[test]
fn shallow_clones_and_borrowed_objects_work() {
    let repo = Repo::new("sha1");
    repo.write("a.txt", "more\n");
    repo.commit();
    let url = format!("file://{}", repo.path.display());
    let outside = repo.dir.path().to_owned();
    for args in [&["clone", "-q", "--depth=1", &url, "shallow"][..], &["clone", "-qs", "repo", "shared"]] {
        repo.git_in(&outside, args);
        let other = outside.join(args.last().unwrap());
        // Relative alternates are legal too, and only there.
        if other.ends_with("shared") {
            fs::write(other.join(".git/objects/info/alternates"), "../../../repo/.git/objects\n").unwrap();
            repo.git_in(&other, &["log"]);
        }
        let host = Host::new(git_handoff::git::store::Store::discover(&other).unwrap(), outside.join("cache2"));
        let workspace = Workspace::create(&host, &run(), &item("i"), 1, repo.head()).unwrap();
        assert_eq!(repo.git_in(&workspace.tree(), &["status", "--porcelain"]), "");
        repo.git_in(&workspace.tree(), &["log"]);
        repo.git_in(&workspace.tree(), &["fsck"]);
        workspace.remove().unwrap();
    }
}

#[test]
fn a_base_that_tracks_our_folders_is_refused() {
    let repo = Repo::new("sha1");
    repo.write("inputs/x", "x");
    repo.commit();
    let mut host = repo.host();
    let made = Workspace::create(&host, &run(), &item("i"), 1, repo.head());
    assert!(matches!(made, Err(Error::Reserved(_, folder)) if folder == "inputs"));
    host.settings.inputs = "handoff in/*".into();
    let workspace = Workspace::create(&host, &run(), &item("i"), 2, repo.head()).unwrap();
    repo.script(&workspace, "echo x >'handoff in/*/x'; test -z \"$(git status --porcelain)\"");
}

#[test]
fn leftovers_are_found_and_removed_whatever_their_modes() {
    let repo = Repo::new("sha1");
    let host = repo.host();
    let workspace = repo.workspace(&host);
    let again = Workspace::create(&host, &run(), &item("edit/a"), 1, repo.head());
    assert!(matches!(again, Err(Error::Exists(_))));
    repo.write("outside/keep", "kept");
    repo.script(
        &workspace,
        "mkdir -p ro/a/b; echo x >ro/a/b/c; ln -s ../../../../repo/outside out; ln -s /etc ro/etc; mkfifo ro/fifo
         chmod 0 ro/a/b/c; chmod 0555 ro/a/b; chmod 0 ro/a; chmod 0555 ro .",
    );
    let found = Workspace::leftovers(&host, &run()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].item.as_str(), found[0].attempt), ("edit/a", 1));
    let dir = found[0].dir.clone();
    Workspace::reopen(&host, &run(), found[0].clone(), repo.head()).unwrap().unwrap().remove().unwrap();
    assert!(!dir.exists() && repo.path.join("outside/keep").exists());
    assert!(Workspace::leftovers(&host, &run()).unwrap().is_empty());
    workspace.remove().unwrap();
}

#[test]
fn folders_deeper_than_any_path_are_removed() {
    let repo = Repo::new("sha1");
    let workspace = repo.workspace(&repo.host());
    let mut at = fs::File::open(workspace.tree()).unwrap();
    for _ in 0..1100 {
        use rustix::fs::{Mode, OFlags, mkdirat, openat};
        mkdirat(&at, "deep-deep-deep", Mode::RWXU).unwrap();
        let next = openat(&at, "deep-deep-deep", OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty()).unwrap();
        at = next.into();
    }
    let dir = workspace.dir.clone();
    workspace.remove().unwrap();
    assert!(!dir.exists());
}

#[test]
fn inputs_are_staged_read_only_and_verified() {
    let repo = Repo::new("sha1");
    let host = repo.host();
    let workspace = repo.workspace(&host);
    let large = vec![7; 6 << 20];
    let (small, big) = (host.store.write_blob(b"in").unwrap(), host.store.write_blob(&large).unwrap());
    let key = |name: &str| FilePath::parse(name).unwrap();
    let mut inputs = BTreeMap::from([
        (key("patch"), (small, Digest::compute(b"in"))),
        (key("deep/er/big"), (big, Digest::compute(&large))),
    ]);
    stage(&workspace, &host.store, &inputs).unwrap();
    assert_eq!(fs::read(workspace.inputs().join("patch")).unwrap(), b"in");
    let staged = workspace.inputs().join("deep/er/big");
    assert_eq!(fs::read(&staged).unwrap(), large);
    assert_eq!(fs::metadata(&staged).unwrap().permissions().mode() & 0o777, 0o444);

    inputs = BTreeMap::from([(key("wrong"), (small, Digest::compute(b"other")))]);
    let error = stage(&workspace, &host.store, &inputs).unwrap_err();
    assert!(error.to_string().contains("wrong") && error.to_string().contains(&Digest::compute(b"other").to_string()));
    let absent = repo.git(&["hash-object", "a.txt"]).replace(['a', 'b', 'c', 'd', 'e', 'f'], "0").parse().unwrap();
    inputs = BTreeMap::from([(key("gone"), (absent, Digest::compute(b"")))]);
    stage(&workspace, &host.store, &inputs).unwrap_err();
    assert!(!workspace.inputs().join("wrong").exists() && !workspace.inputs().join("gone").exists());
}

#[test]
fn a_result_is_read_only_if_it_is_a_plain_file() {
    let repo = Repo::new("sha1");
    let workspace = repo.workspace(&repo.host());
    assert_eq!(workspace.read_result(), None);
    let result = workspace.result().display().to_string();
    repo.script(&workspace, &format!("printf '{{}}' >{result}"));
    assert_eq!(workspace.read_result().as_deref(), Some(&b"{}"[..]));
    for script in [format!("ln -sf /etc/passwd {result}"), format!("rm {result}; mkfifo {result}")] {
        repo.script(&workspace, &script);
        assert_eq!(workspace.read_result(), None);
    }
}

#[test]
fn sites_and_worktrees_go_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Host>();
    shared::<Workspace>();
}
