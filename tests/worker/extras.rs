//! Files in a worktree besides the base, none of which becomes part of a change.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use git_handoff::git::store::Store;
use git_handoff::worktree::capture::capture;
use git_handoff::worktree::host::Host;
use git_handoff::worktree::salvage::salvage;
use git_handoff::worktree::workspace::Workspace;

use crate::worker::harness::{Repo, item, run};

/// A repository whose user has files that no commit has.
fn with_extras() -> (Repo, Host, tempfile::TempDir) {
    let repo = Repo::new("sha1");
    repo.write(".gitignore", "*.log\n/target/\n.env*\nnode_modules\n");
    repo.commit();
    repo.write(".worktreeinclude", ".env*\n!.env.none\n*.txt\nlocal/\n");
    repo.write(".env", "SECRET=1\n");
    repo.write(".env.none", "x\n");
    repo.write("pkg/.env.local", "SECRET=2\n");
    repo.write("untracked.txt", "not ignored\n");
    repo.write("node_modules/a/index.js", "a\n");
    repo.write("node_modules/a/.git/config", "[core]\n");
    repo.write("pkg/b/node_modules/x", "x\n");
    repo.write("cache/tool", "#!/bin/sh\n");
    fs::set_permissions(repo.path.join("cache/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("tool", repo.path.join("cache/alias")).unwrap();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut host = repo.host();
    host.settings.root = dir.path().join("root");
    (repo, host, dir)
}

fn create(repo: &Repo, host: &Host, attempt: u32) -> Workspace {
    let workspace = Workspace::create(host, &run(), &item("i"), attempt, repo.head()).unwrap();
    workspace.mark_started().unwrap();
    workspace
}

#[test]
fn only_configured_ignored_files_are_copied() {
    let (repo, host, _dir) = with_extras();
    let workspace = create(&repo, &host, 1);
    let tree = workspace.tree();
    assert_eq!(fs::read(tree.join(".env")).unwrap(), b"SECRET=1\n");
    assert_eq!(fs::read(tree.join("pkg/.env.local")).unwrap(), b"SECRET=2\n");
    for path in [".env.none", "untracked.txt", "node_modules", ".worktreeinclude"] {
        assert!(!tree.join(path).exists(), "{path}");
    }
    assert_eq!(repo.git_in(&tree, &["status", "--porcelain"]), "");
    assert!(capture(&workspace, &host).unwrap().patch.is_none());
    // Not even if the worker has git see them.
    repo.script(
        &workspace,
        "echo '!.env' >.gitignore; echo MORE=1 >>.env; echo '!.env*' >pkg/.gitignore; echo x >.env.new",
    );
    let patch = host.store.read_blob(capture(&workspace, &host).unwrap().patch.unwrap().oid).unwrap();
    let patch = String::from_utf8_lossy(&patch).into_owned();
    assert!(!patch.contains("SECRET") && !patch.contains("MORE") && patch.contains(".gitignore"), "{patch}");
    let second_tree = salvage(&workspace, &host).unwrap().unwrap().tree.to_string();
    let listed = repo.git(&["ls-tree", "-r", "--name-only", &second_tree]);
    assert!(!listed.lines().any(|line| line == ".env" || line == "pkg/.env.local"), "{listed}");
}

#[test]
fn configured_files_are_copied_or_linked() {
    let (repo, mut host, _dir) = with_extras();
    host.settings.copy = vec!["cache".into(), "missing".into()];
    host.settings.link = vec!["**/node_modules".into()];
    let workspace = create(&repo, &host, 1);
    let tree = workspace.tree();
    assert_ne!(fs::metadata(tree.join("cache/tool")).unwrap().permissions().mode() & 0o111, 0);
    assert_eq!(fs::read_link(tree.join("cache/alias")).unwrap().to_str(), Some("tool"));
    for path in ["node_modules", "pkg/b/node_modules"] {
        assert_eq!(fs::read_link(tree.join(path)).unwrap(), repo.path.join(path));
    }
    assert_eq!(fs::read(tree.join("node_modules/a/index.js")).unwrap(), b"a\n");
    assert_eq!(repo.git_in(&tree, &["status", "--porcelain"]), "");
    repo.script(
        &workspace,
        "echo x >>cache/tool; echo x >cache/new; rm node_modules; echo x >node_modules; echo y >>a.txt",
    );
    let patch = host.store.read_blob(capture(&workspace, &host).unwrap().patch.unwrap().oid).unwrap();
    let patch = String::from_utf8_lossy(&patch).into_owned();
    assert!(patch.contains("a.txt") && !patch.contains("cache") && !patch.contains("node_modules"), "{patch}");
    // The next attempt finds them as the user has them, also if they changed meanwhile.
    workspace.recycle(&host).unwrap_or_else(|workspace| workspace.remove().unwrap());
    let second_workspace = create(&repo, &host, 2);
    assert_eq!(fs::read(second_workspace.tree().join("cache/tool")).unwrap(), b"#!/bin/sh\n");
    assert!(!second_workspace.tree().join("cache/new").exists());
    assert!(fs::symlink_metadata(second_workspace.tree().join("node_modules")).unwrap().is_symlink());
    second_workspace.recycle(&host).unwrap_or_else(|unused| unused.remove().unwrap());
    repo.write("cache/tool", "other\n");
    let third_workspace = create(&repo, &host, 3);
    assert_eq!(fs::read(third_workspace.tree().join("cache/tool")).unwrap(), b"other\n");
    assert_eq!(fs::read(repo.path.join("node_modules/a/index.js")).unwrap(), b"a\n");
}

#[test]
fn uncopyable_files_are_reported() {
    let (repo, mut host, _dir) = with_extras();
    host.settings.copy = vec!["dir".into()];
    let made = Workspace::create(&host, &run(), &item("i"), 1, repo.head());
    insta::assert_snapshot!(made.unwrap_err().to_string(), @"handoff.workspace.copy or handoff.workspace.link names dir, which the base commit tracks; name only untracked files");
    repo.git_in(repo.dir.path(), &["clone", "-q", "--bare", "repo", "bare"]);
    let store = git_handoff::git::store::Store::discover(&repo.dir.path().join("bare")).unwrap();
    let mut host = Host::new(store, host.settings.root.clone());
    Workspace::create(&host, &run(), &item("i"), 2, repo.head()).unwrap();
    host.settings.link = vec!["node_modules".into()];
    let mut other = Host::new(host.store.clone(), host.settings.root.clone());
    other.settings.link.clone_from(&host.settings.link);
    let second_made = Workspace::create(&other, &run(), &item("i"), 3, repo.head());
    insta::assert_snapshot!(second_made.unwrap_err().to_string(), @"handoff.workspace.link is set, but a bare repository has no work tree to copy from");
}

#[test]
fn filters_of_lfs_can_be_left_out() {
    let repo = Repo::new("sha1");
    repo.git(&["config", "filter.lfs.smudge", "sed s/pointer/content/"]);
    repo.git(&["config", "filter.lfs.clean", "sed s/content/pointer/"]);
    repo.write(".gitattributes", "*.bin filter=lfs\n");
    repo.write("x.bin", "pointer\n");
    repo.commit();
    for (lfs, expected) in [(true, "content\n"), (false, "pointer\n")] {
        let mut host = repo.host();
        host.settings.lfs = lfs;
        // A machine with git-lfs has a filter of that name in its own settings.
        host.store = Store::open(&repo.path.join(".git")).unwrap();
        let workspace = create(&repo, &host, u32::from(lfs) + 1);
        assert_eq!(fs::read_to_string(workspace.tree().join("x.bin")).unwrap(), expected);
        assert_eq!(repo.git_in(&workspace.tree(), &["status", "--porcelain"]), "");
        repo.script(&workspace, "touch x.bin");
        assert!(capture(&workspace, &host).unwrap().patch.is_none());
        workspace.remove().unwrap();
    }
}

#[test]
fn sparse_checkout_patch_deletes_no_excluded_file() {
    for patterns in [&["set", "--cone", "dir/deep"][..], &["set", "--no-cone", "/*", "!/dir/b.txt", "!crlf.txt"]] {
        let repo = Repo::new("sha1");
        repo.write("other/x", "x\n");
        repo.commit();
        repo.git(&[&["sparse-checkout"], patterns].concat());
        let (dir, mut host) = (tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), repo.host());
        host.settings.root = dir.path().join("root");
        for attempt in 1..=2 {
            let workspace = create(&repo, &host, attempt);
            let tree = workspace.tree();
            for path in ["a.txt", "dir/b.txt", "dir/deep/c.bin", "crlf.txt", "other/x"] {
                assert_eq!(tree.join(path).exists(), repo.path.join(path).exists(), "{patterns:?} {path}");
            }
            assert_eq!(repo.git_in(&tree, &["status", "--porcelain"]), "", "{patterns:?}");
            assert!(capture(&workspace, &host).unwrap().patch.is_none(), "{patterns:?}");
            repo.script(&workspace, "mkdir -p other; echo new >other/new; echo changed >other/x; echo y >>a.txt");
            let patch = host.store.read_blob(capture(&workspace, &host).unwrap().patch.unwrap().oid).unwrap();
            let patch = String::from_utf8_lossy(&patch).into_owned();
            for name in ["other/new", "other/x", "a.txt"] {
                assert!(patch.contains(&format!("b/{name}\n")), "{patch}");
            }
            assert!(!patch.contains("deleted file"), "{patch}");
            let second_tree = salvage(&workspace, &host).unwrap().unwrap().tree.to_string();
            let listed = repo.git(&["ls-tree", "-r", "--name-only", &second_tree]);
            for name in ["other/new", "dir/b.txt", "crlf.txt"] {
                assert!(listed.lines().any(|line| line == name), "{name}: {listed}");
            }
            workspace.recycle(&host).unwrap_or_else(|workspace| workspace.remove().unwrap());
        }
        let mut whole = repo.host();
        whole.settings.sparse = false;
        let workspace = create(&repo, &whole, 9);
        assert!(workspace.tree().join("dir/b.txt").exists() && workspace.tree().join("other/x").exists());
    }
}

#[test]
fn submodules_are_checked_out_from_what_is_here_and_a_change_in_one_is_refused() {
    let repo = Repo::new("sha1");
    let library = Repo::new("sha1");
    let url = library.path.to_str().unwrap();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", "--name", "lib", url, "libs/sub"]);
    repo.git(&["commit", "-qm", "sub"]);
    let (dir, mut host) = (tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), repo.host());
    host.settings.root = dir.path().join("root");
    host.settings.submodules = true;
    for attempt in [1, 2] {
        let workspace = create(&repo, &host, attempt);
        let sub = workspace.tree().join("libs/sub");
        assert_eq!(fs::read(sub.join("a.txt")).unwrap(), b"one\ntwo\nthree\n");
        assert_eq!(fs::read_dir(sub.join("dir")).unwrap().count(), 2);
        assert_eq!(repo.git_in(&sub, &["status", "--porcelain"]), "");
        assert_eq!(repo.git_in(&workspace.tree(), &["status", "--porcelain"]), "");
        assert!(capture(&workspace, &host).unwrap().patch.is_none());
        repo.script(&workspace, "echo y >>a.txt; touch libs/sub/a.txt; echo x >libs/sub/zero");
        let refused = capture(&workspace, &host).unwrap_err().to_string();
        assert!(refused.starts_with("\"libs/sub/zero\" was changed, which is a submodule's"), "{refused}");
        repo.script(&workspace, "rm libs/sub/zero; echo x >>.gitignore; echo x >libs/sub/made.log");
        for (script, file, back) in [
            ("cp -p libs/sub/a.txt saved; echo x >>libs/sub/a.txt", "a.txt", "cat saved >libs/sub/a.txt; rm saved"),
            ("chmod +x libs/sub/a.txt", "a.txt", "chmod -x libs/sub/a.txt"),
            ("mv libs/sub/dir dir.away", "dir/", "mv dir.away libs/sub/dir"),
            ("mkdir libs/sub/more; echo x >libs/sub/more/new", "more/new", "rm -r libs/sub/more"),
            ("mv libs/sub away; echo x >libs/sub", "\" was", "rm libs/sub; mv away libs/sub"),
            ("mkfifo libs/sub/more", "", "rm libs/sub/more"),
        ] {
            repo.script(&workspace, script);
            match capture(&workspace, &host) {
                Err(refusal) => {
                    let message = refusal.to_string();
                    assert!(
                        !file.is_empty() && message.contains(&format!("libs/sub/{file}"))
                            || file == "\" was" && message.starts_with("\"libs/sub\" was"),
                        "{script}: {message}"
                    );
                }
                Ok(_) => assert!(file.is_empty(), "{script}"),
            }
            repo.script(&workspace, back);
        }
        let patch = host.store.read_blob(capture(&workspace, &host).unwrap().patch.unwrap().oid).unwrap();
        let patch = String::from_utf8_lossy(&patch).into_owned();
        assert!(patch.contains("b/a.txt") && !patch.contains("libs"), "{patch}");
        for script in ["rm -r libs/sub", "rm -r libs"] {
            repo.script(&workspace, script);
            let later_refusal = capture(&workspace, &host).unwrap_err().to_string();
            assert!(later_refusal.starts_with("\"libs/sub\" was changed"), "{script}: {later_refusal}");
        }
        workspace.recycle(&host).unwrap_or_else(|workspace| workspace.remove().unwrap());
    }
    // Nothing is checked out, and nothing can be handed over from there either.
    host.settings.submodules = false;
    let workspace = create(&repo, &repo.host(), 9);
    repo.script(&workspace, "echo x >libs/sub/new");
    let refused = capture(&workspace, &repo.host()).unwrap_err().to_string();
    insta::assert_snapshot!(refused, @r#""libs/sub/new" was changed, which is a submodule's: no patch can carry that; hand it over below outputs/, or change the submodule in its own repository"#);
    fs::remove_dir_all(repo.path.join(".git/modules")).unwrap();
    let mut other = repo.host();
    other.settings.submodules = true;
    let message = Workspace::create(&other, &run(), &item("i"), 3, repo.head()).unwrap_err().to_string();
    let commit = repo.git(&["rev-parse", "HEAD:libs/sub"]);
    let fetches = "`git submodule update --init -- libs/sub` fetches it";
    assert_eq!(message, format!("the submodule libs/sub has no commit {} here; {fetches}", commit.trim()));
    // A name that leads out of the repository's own folder is not followed.
    fs::rename(repo.path.join("libs/sub"), repo.dir.path().join("moved")).unwrap();
    repo.git_in(repo.dir.path(), &["clone", "-q", "--bare", url, "evil"]);
    fs::rename(repo.dir.path().join("evil"), repo.path.join(".git/evil")).unwrap();
    repo.write(".gitmodules", "[submodule \"../evil\"]\npath = libs/sub\nurl = x\n");
    repo.git(&["add", ".gitmodules"]);
    repo.git(&["commit", "-qm", "evil"]);
    let made = Workspace::create(&other, &run(), &item("i"), 4, repo.head());
    assert_eq!(made.unwrap_err().to_string(), message);
}
