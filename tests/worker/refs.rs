//! The refs, the remotes and the ignore rules that a worker's git has.

use std::fs;
use std::path::Path;

use git_handoff::git::store::Store;
use git_handoff::model::digest::Digest;
use git_handoff::worktree::capture::capture;
use git_handoff::worktree::host::Host;
use git_handoff::worktree::workspace::Workspace;

use crate::worker::harness::{FORMATS, Repo, item, run};
use crate::worker::pool;

/// The refs that git lists in worktrees.
const LIST: [&str; 5] = [
    "for-each-ref",
    "--format=%(objectname) %(refname) %(symref) %(*objectname)",
    "refs/heads",
    "refs/remotes",
    "refs/tags",
];

/// A repository with branches, tags of both kinds, remote-tracking refs, and refs that no worktree
/// has.
fn repo(format: &str) -> Repo {
    let repo = Repo::new(format);
    repo.git(&["tag", "light"]);
    repo.git(&["tag", "-am", "one", "v1.0"]);
    repo.git(&["tag", "-am", "of a tag", "nested", "v1.0"]);
    repo.git(&["tag", "tree", "HEAD^{tree}"]);
    repo.git(&["branch", "dev"]);
    repo.git(&["branch", "topic/ä/b"]);
    repo.git(&["pack-refs", "--all"]);
    repo.write("b.txt", "b");
    repo.commit();
    repo.git(&["tag", "-am", "loose", "v2.0-rc"]);
    repo.git(&["update-ref", "refs/remotes/origin/main", "HEAD~1"]);
    repo.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
    repo.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/dev"]);
    repo.write("b.txt", "stashed");
    repo.git(&["stash", "--quiet"]);
    repo.git(&["notes", "add", "-m", "note"]);
    repo.git(&["update-ref", "refs/handoff/runs/x", "HEAD"]);
    repo
}

fn made(repo: &Repo, host: &Host, number: u32) -> Workspace {
    let workspace = Workspace::create(host, &run(), &item("edit/a"), number, repo.head()).unwrap();
    workspace.mark_started().unwrap();
    workspace
}

/// Returns the digests of tags and branches as `docs/reference/writing.md` says, from what git
/// lists.
fn digests(repo: &Repo) -> [Digest; 2] {
    let head = String::from_utf8(repo.try_git(&repo.path, &["symbolic-ref", "-q", "HEAD"]).stdout).unwrap();
    let head = if head.is_empty() { head } else { format!("ref:{} HEAD\n", head.trim_end()) };
    let list = |start: String, prefixes: &[&str]| {
        let listed = repo.git(&[&["for-each-ref", "--format=%(objectname)|%(refname)|%(symref)|"], prefixes].concat());
        let lines = listed.lines().map(|line| match line.split('|').collect::<Vec<_>>()[..] {
            [oid, name, "", _] => format!("{oid} {name}\n"),
            [_, name, to, _] => format!("ref:{to} {name}\n"),
            _ => panic!("{line}"),
        });
        Digest::compute([start].into_iter().chain(lines).collect::<String>().as_bytes())
    };
    [list(String::new(), &["refs/tags"]), list(head, &["refs/heads", "refs/remotes"])]
}

/// Returns those that a host gives.
fn given(host: &Host) -> [Digest; 2] {
    let refs = host.refs().unwrap();
    [refs.tags(), refs.branches()]
}

#[test]
fn a_worktree_has_the_branches_the_tags_and_what_was_fetched() {
    for format in FORMATS {
        let repo = repo(format);
        let host = repo.host();
        let workspace = made(&repo, &host, 1);
        let tree = workspace.tree();
        assert_eq!(repo.git_in(&tree, &LIST), repo.git(&LIST));
        assert_eq!(
            repo.git_in(&tree, &["for-each-ref", "--count=100", "refs/handoff", "refs/stash", "refs/notes"]),
            ""
        );
        assert_eq!(given(&host), digests(&repo));
        repo.script(
            &workspace,
            "test \"$(git rev-parse --abbrev-ref HEAD)\" = main
             test \"$(git describe --tags)\" = v2.0-rc; test \"$(git describe dev)\" = nested
             git merge-base main HEAD; git diff --stat dev...HEAD | grep -q b.txt; git log dev -1 --oneline
             git log -1 origin/main; git rev-parse origin/HEAD; test \"$(git branch --show-current)\" = main
             git checkout -q -b w; echo 1 >q; git add q; git commit -qm x; git rebase -q dev; echo 2 >>q
             git stash -q; git stash pop -q; git commit -qam y; git checkout -q main; git merge -q w
             git tag -d v1.0; git symbolic-ref -d refs/heads/alias; git branch -D dev; git gc -q; git fsck --no-dangling
             git update-ref -d refs/remotes/origin/HEAD; git pack-refs --all --prune; git tag new; git tag -f light",
        );
        // Its changes to them stay local.
        assert_eq!(given(&host), digests(&repo));
        assert!(repo.git(&["tag", "--list"]).contains("v1.0") && !repo.git(&["tag", "--list"]).contains("new"));
        assert!(capture(&workspace, &host).unwrap().patch.is_some());
        workspace.remove().unwrap();
    }
}

#[test]
fn head_is_a_branch_only_where_that_is_at_the_base() {
    let repo = repo("sha1");
    let first = repo.git(&["rev-parse", "dev"]).parse().unwrap();
    let name = |host: &Host, base, number| {
        let workspace = Workspace::create(host, &run(), &item("i"), number, base).unwrap();
        let name = repo.git_in(&workspace.tree(), &["rev-parse", "--abbrev-ref", "HEAD"]);
        assert_eq!(repo.git_in(&workspace.tree(), &["rev-parse", "HEAD"]), base.to_string());
        assert_eq!(repo.git_in(&workspace.tree(), &["status", "--porcelain"]), "");
        workspace.remove().unwrap();
        name
    };
    let outside = repo.dir.path().to_owned();
    assert_eq!(name(&repo.host(), repo.head(), 1), "main");
    assert_eq!(name(&repo.host(), first, 2), "HEAD");
    repo.git(&["checkout", "-q", "--detach"]);
    assert_eq!(name(&repo.host(), repo.head(), 3), "HEAD");
    // A linked worktree is on a branch of its own, and a bare repository names one.
    repo.git(&["worktree", "add", "-q", "../linked", "topic/ä/b"]);
    repo.git_in(&outside, &["clone", "-q", "--mirror", "repo", "bare"]);
    repo.git_in(&outside.join("bare"), &["symbolic-ref", "HEAD", "refs/heads/dev"]);
    for (dir, branch) in [("linked", "topic/ä/b"), ("bare", "dev")] {
        let host = Host::new(Store::discover(&outside.join(dir)).unwrap(), outside.join(format!("{dir}.cache")));
        assert_eq!(name(&host, first, 1), branch);
    }
}

#[test]
fn refs_are_those_of_when_the_attempt_starts() {
    for format in FORMATS {
        let repo = repo(format);
        let (host, _dir) = pool::host(&repo);
        made(&repo, &host, 1).recycle(&host).unwrap_or_else(|workspace| workspace.remove().unwrap());
        for (number, (in_the_repository, by_the_worker)) in (2..).zip([
            (&["tag", "late"][..], "git tag -d v1.0 light; git checkout -q --detach; rm .git/packed-refs"),
            (&["tag", "-d", "late"], "git update-ref refs/heads/x HEAD; echo junk >.git/packed-refs"),
            (&["branch", "deep/er/branch"], "echo junk >.git/refs/remotes/origin/HEAD"),
            (&["pack-refs", "--all", "--prune"], "ln -sf /etc/passwd .git/packed-refs"),
            (&["update-ref", "refs/remotes/origin/main", "HEAD"], "rm .git/HEAD; git init -q"),
            (&["checkout", "-q", "--detach"], "true"),
            (&["checkout", "-q", "main"], "true"),
            (&["symbolic-ref", "-d", "refs/remotes/origin/HEAD"], "true"),
            (&["commit", "-q", "--allow-empty", "-m", "more"], "true"),
        ]) {
            repo.git(in_the_repository);
            let workspace = made(&repo, &host, number);
            assert_eq!(repo.git_in(&workspace.tree(), &LIST), repo.git(&LIST), "{in_the_repository:?}");
            assert_eq!(given(&host), digests(&repo), "{in_the_repository:?}");
            for args in [&["rev-parse", "--abbrev-ref", "HEAD"][..], &["status", "--porcelain"]] {
                let expected = if args[0] == "status" { String::new() } else { repo.git(args) };
                assert_eq!(repo.git_in(&workspace.tree(), args), expected, "{in_the_repository:?}");
            }
            repo.script(&workspace, by_the_worker);
            if let Err(workspace) = workspace.recycle(&host) {
                workspace.remove().unwrap();
            }
        }
    }
}

#[test]
fn refs_that_lead_nowhere_are_left_out() {
    let repo = repo("sha1");
    let missing = "1".repeat(40);
    fs::write(repo.path.join(".git/refs/heads/broken"), format!("{missing}\n")).unwrap();
    fs::write(repo.path.join(".git/refs/tags/junk"), "junk\n").unwrap();
    fs::write(repo.path.join(".git/refs/tags/x.lock"), "").unwrap();
    repo.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone"]);
    repo.git(&["symbolic-ref", "refs/heads/out", "refs/handoff/runs/x"]);
    let workspace = made(&repo, &repo.host(), 1);
    let listed = repo.git_in(&workspace.tree(), &["for-each-ref", "--format=%(refname)"]);
    for name in ["broken", "junk", "lock", "origin/HEAD", "out"] {
        assert!(!listed.contains(name), "{listed}");
    }
    repo.script(&workspace, "git log --all --oneline; git fsck --no-dangling; git gc -q");
    workspace.remove().unwrap();
    // git would read one thing in such a file, and others another.
    let packed = fs::read_to_string(repo.path.join(".git/packed-refs")).unwrap();
    let last = packed.lines().rfind(|line| !line.starts_with('^')).unwrap();
    fs::write(repo.path.join(".git/packed-refs"), format!("{packed}{last}\n")).unwrap();
    let error = repo.host().refs().unwrap_err();
    assert_eq!(error.to_string(), "cannot read the refs of the repository");
}

#[test]
fn many_refs_are_read_once() {
    let repo = Repo::new("sha1");
    let head = repo.head();
    let names = (0..10_000).fold(String::new(), |text, n| text + &format!("{head} refs/tags/t{n:05}\n"));
    fs::write(repo.path.join(".git/packed-refs"), format!("# pack-refs with: peeled fully-peeled sorted \n{names}"))
        .unwrap();
    let host = repo.host();
    for number in 1..4 {
        let workspace = made(&repo, &host, number);
        assert_eq!(repo.git_in(&workspace.tree(), &["tag"]).lines().count(), 10_000);
        workspace.remove().unwrap();
    }
}

#[test]
fn remotes_are_those_of_the_repository_without_credentials() {
    for format in FORMATS {
        let repo = repo(format);
        repo.git_in(repo.dir.path(), &["clone", "-q", "--bare", "repo", "up ä.git"]);
        for (key, value) in [
            ("remote.origin.url", "../up ä.git"),
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ("remote.web.url", "https://me:hunter2@example.com/a.git"),
            ("remote.web.fetch", "+refs/heads/*:refs/remotes/web/*"),
            ("remote.web.pushurl", "https://me:hunter2@example.com/a.git"),
            ("remote.query.url", "https://example.com/a?token=ghp_0123456789abcdefghijABCDEFGHIJ012345"),
            ("remote.bad.url", "https://example.com/ghp_0123456789abcdefghijABCDEFGHIJ012345/a"),
            ("branch.main.remote", "origin"),
            ("branch.main.merge", "refs/heads/main"),
            ("http.extraHeader", "Authorization: Basic aHVudGVyMg=="),
        ] {
            repo.git(&["config", key, value]);
        }
        let host = repo.host();
        let workspace = made(&repo, &host, 1);
        let tree = workspace.tree();
        assert_eq!(repo.git_in(&tree, &["config", "remote.web.url"]), "https://example.com/a.git");
        assert_eq!(repo.git_in(&tree, &["remote"]), "origin\nquery\nweb");
        let config = fs::read_to_string(tree.join(".git/config")).unwrap();
        for secret in ["hunter2", "ghp_", "aHVudGVyMg"] {
            assert!(!config.contains(secret), "{config}");
        }
        repo.git(&["push", "-q", "../up ä.git", "HEAD:refs/heads/fresh"]);
        repo.script(
            &workspace,
            "git fetch -q; git rev-parse origin/fresh; test \"$(git rev-parse --abbrev-ref @{u})\" = origin/main",
        );
        // Nothing of it came to the repository.
        assert!(!repo.git(&["for-each-ref"]).contains("fresh"));
        workspace.remove().unwrap();
    }
}

#[test]
fn a_shallow_clone_has_the_refs_that_it_has() {
    let repo = repo("sha1");
    let outside = repo.dir.path().to_owned();
    let url = format!("file://{}", repo.path.display());
    for args in [
        &["clone", "-q", "--depth=1", "--no-single-branch", &url, "shallow"][..],
        &["-c", "protocol.allow=always", "clone", "-q", "--filter=blob:none", &url, "partial"],
    ] {
        repo.git(&["config", "uploadpack.allowFilter", "true"]);
        repo.git_in(&outside, args);
        let clone = outside.join(args.last().unwrap());
        let host = Host::new(Store::discover(&clone).unwrap(), outside.join(format!("{}.cache", args.last().unwrap())));
        let workspace = Workspace::create(&host, &run(), &item("i"), 1, repo.head()).unwrap();
        let tree = workspace.tree();
        assert_eq!(repo.git_in(&tree, &LIST), repo.git_in(&clone, &LIST));
        repo.git_in(&tree, &["log", "--all", "--oneline"]);
        repo.git_in(&tree, &["diff", "--stat", "origin/dev", "HEAD"]);
        repo.git_in(&tree, &["fetch", "-q"]);
        repo.git_in(&tree, &["fsck", "--no-dangling"]);
        repo.git_in(&tree, &["gc", "-q"]);
        workspace.remove().unwrap();
    }
}

/// Returns true if a program is there to be run.
fn has(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("--version").output().is_ok();
    if !found {
        pool::skipped(&format!("{program} is not here"));
    }
    found
}

#[test]
fn inputs_and_outputs_are_hidden_from_git_and_from_nothing_else() {
    for format in FORMATS {
        let repo = Repo::new(format);
        let home = repo.dir.path().join("home");
        fs::write(home.join("ignored by me"), "*.mine\n").unwrap();
        repo.git(&["config", "core.excludesFile", home.join("ignored by me").to_str().unwrap()]);
        repo.write(".git/info/exclude", "*.private");
        let mut host = repo.host();
        host.settings.copy = vec![".env".into()];
        repo.write(".env", "x");
        let workspace = made(&repo, &host, 1);
        let tree = workspace.tree();
        assert_eq!(fs::read_to_string(tree.join(".git/info/exclude")).unwrap(), "*.private\n");
        repo.script(
            &workspace,
            "echo needle >inputs/patch; echo needle >outputs/found; echo >x.mine; echo >x.private
             test -z \"$(git status --porcelain)\"; mkdir sub; (cd sub; test -z \"$(git status --porcelain)\")
             git -C \"$PWD\" --git-dir=\"$PWD/.git\" --work-tree=\"$PWD\" status --porcelain | diff - /dev/null
             echo x >new; git add -A; git commit -qam x; test \"$(git show --format= --name-only)\" = new
             git stash -qu; git clean -qfd; test -e inputs/patch -a -e outputs/found -a -e .env
             git worktree add -q ../inner 2>/dev/null || git worktree add -q .inner; test -z \"$(git -C .inner status --porcelain)\"",
        );
        for program in ["rg", "fdfind"].into_iter().filter(|program| has(program)) {
            let args: &[&str] = if program == "rg" { &["--files-with-matches", "needle"] } else { &["patch|found"] };
            let found = std::process::Command::new(program).args(args).current_dir(&tree).env("HOME", &home).output();
            let found = String::from_utf8(found.unwrap().stdout).unwrap();
            assert!(found.contains("inputs/patch") && found.contains("outputs/found"), "{program}: {found}");
        }
        // Whatever the worker makes of the rules, what was not its work is left out, and all else
        // is taken.
        for rules in
            ["git config --unset core.excludesFile", "echo '!*' >.gitignore", "echo >.git/info/handoff-exclude"]
        {
            repo.script(&workspace, rules);
        }
        let captured = capture(&workspace, &host).unwrap();
        let patch = String::from_utf8(host.store.read_blob(captured.patch.unwrap().oid).unwrap()).unwrap();
        let files = patch.lines().filter(|line| line.starts_with("diff "));
        assert!(files.clone().any(|line| line.ends_with("b/new")), "{patch}");
        assert!(files.clone().all(|line| !line.contains("inputs/") && !line.contains("outputs/")), "{patch}");
        assert_eq!(captured.outputs.len(), 1);
        workspace.remove().unwrap();
    }
}

#[test]
fn tools_can_use_the_repository() {
    let repo = repo("sha1");
    let host = repo.host();
    let workspace = made(&repo, &host, 1);
    repo.script(&workspace, "git worktree add -q ./.wt HEAD; git -C .wt status; git worktree remove .wt; git gc -q");
    if has("git-lfs") {
        repo.script(
            &workspace,
            "git lfs install --local; git lfs track '*.bin'; head -c 1000 /dev/urandom >a.bin; git add -A; git commit -qm lfs
             git cat-file -p HEAD:a.bin | grep -q git-lfs",
        );
    }
    let hook = "mkdir -p .git/hooks; printf '#!/bin/sh\\necho hook >>hooked\\n' >.git/hooks/pre-commit
        chmod +x .git/hooks/pre-commit; git commit -q --allow-empty -m hooked; test -s hooked";
    repo.script(&workspace, hook);
    assert!(capture(&workspace, &host).unwrap().patch.is_some());
    assert!(!Path::new(&repo.path).join(".git/hooks/pre-commit").exists());
    workspace.remove().unwrap();
}
