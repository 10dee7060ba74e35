//! Worktrees made to harm whoever looks at them. Each attack has a canary that [`Repo::captured`] looks for.

use git_handoff::worker::capture::{Error, capture};
use git_handoff::worker::salvage::salvage;

use crate::worker::harness::Repo;

#[test]
fn nested_repositories_are_refused_by_name() {
    let repo = Repo::new("sha1");
    for (script, named) in [
        ("git init -q vendor/lib; git -C vendor/lib config core.fsmonitor 'touch $CANARY'", "vendor/lib"),
        ("mkdir -p x; echo 'gitdir: /tmp' >x/.git", "\"x\""),
        ("mkdir -p y; ln -s ../.git y/.git", "\"y\""),
        ("mkdir -p z/.GiT; echo x >z/.GiT/config", "\"z\""),
        ("mkdir -p w/git~1; echo x >w/git~1/x", "\"w\""),
        ("mkdir .GIT; echo x >.GIT/x", ".GIT"),
        ("mkdir -p 'v/.g\u{200c}it'; echo x >'v/.g\u{200c}it/x'", "\"v\""),
    ] {
        let sentence = repo.refused(script);
        assert!(sentence.contains(named), "{sentence}");
    }
    // In an ignored folder they are nobody's business, unless the worker takes the ignoring back.
    assert_eq!(repo.patch("git init -q target/lib; git -C target/lib config core.fsmonitor 'touch $CANARY'"), None);
    assert!(repo.refused("git init -q target/lib; echo >.gitignore").contains("target/lib"));
}

#[test]
fn the_worktrees_own_git_directory_is_never_read() {
    let repo = Repo::new("sha1");
    let expected = repo.patch("echo x >>a.txt");
    for script in [
        "git config core.fsmonitor 'touch $CANARY; false'",
        "git config core.hooksPath .h; mkdir .git/h; git config filter.x.clean 'touch $CANARY; cat'
         mkdir -p .git/info; echo '* filter=x' >.git/info/attributes",
        "git config core.worktree /; git config include.path ../../evil; git config extensions.worktreeConfig true",
        "git config core.excludesFile /dev/stdin; echo '*' >>.git/info/exclude",
        "rm -rf .git; mkdir .git; echo 'ref: refs/heads/x' >.git/HEAD; echo junk >.git/config; echo junk >.git/index",
        "rm -rf .git; ln -s /etc .git",
        "rm -rf .git; echo 'gitdir: /nonexistent' >.git",
        "rm -rf .git; git init -q .git 2>/dev/null || mkdir .git",
        "rm -rf .git",
        "echo /nonexistent >.git/commondir; echo junk >.git/shallow; git replace -f HEAD:a.txt HEAD:crlf.txt || :",
    ] {
        assert_eq!(repo.patch(&format!("{script}\necho x >>a.txt")), expected, "{script}");
    }
}

#[test]
fn attributes_of_the_worker_run_no_filter() {
    let repo = Repo::new("sha1");
    repo.git(&["config", "filter.danger.clean", "touch $CANARY; cat"]);
    repo.git(&["config", "filter.danger.smudge", "cat"]);
    repo.git(&["config", "diff.danger.textconv", "touch $CANARY; cat"]);
    repo.git(&["config", "diff.danger.command", "touch $CANARY; cat"]);
    repo.git(&["config", "filter.danger.clean", &format!("touch {}; cat", repo.canary().display())]);
    let script =
        "echo '* filter=danger diff=danger' >.gitattributes; cp .gitattributes dir/; echo x >>a.txt; echo y >new";
    if !git_handoff::git::program::takes_attributes_from_trees() {
        assert!(repo.refused(script).contains(".gitattributes"));
        return;
    }
    let patch = String::from_utf8(repo.patch(script).unwrap()).unwrap();
    assert!(patch.contains("+x\n") && patch.contains("filter=danger"));
}

#[test]
fn links_are_taken_as_links() {
    let repo = Repo::new("sha1");
    std::fs::write(repo.dir.path().join("secret"), "top secret").unwrap();
    let script =
        "ln -s ../../../../secret s; ln -s ../../../.. up; rm -r dir; ln -s /etc dir; ln -sfn /etc/passwd a.txt";
    let patch = String::from_utf8(repo.patch(script).unwrap()).unwrap();
    assert!(!patch.contains("top secret") && !patch.contains("root:"));
    assert!(patch.contains("+/etc/passwd") && patch.contains("new file mode 120000"));
}

#[test]
fn a_worktree_that_is_gone_is_the_workers_doing() {
    let repo = Repo::new("sha1");
    let site = repo.site();
    for script in ["rm -rf \"$PWD\"", "mv ../tree ../t; ln -s /etc ../tree", "mv ../tree ../t; echo >../tree"] {
        let workspace = repo.workspace(&site);
        repo.script(&workspace, script);
        let Err(Error::Refused(sentence)) = capture(&workspace, &site) else { panic!("{script}") };
        assert!(sentence.contains("its own worktree"), "{sentence}");
        assert!(salvage(&workspace, &site).unwrap().is_none());
        workspace.remove().unwrap();
    }
}

#[test]
fn what_git_cannot_take_is_refused_by_name() {
    let repo = Repo::new("sha1");
    let mut site = repo.site();
    assert!(repo.refused("rm a.txt; mkfifo a.txt").contains("a.txt"));
    let deep =
        "for i in $(seq 300); do mkdir deep-deep-deep-deep && cd -P deep-deep-deep-deep || exit 1; done; echo >x";
    assert!(repo.refused(deep).contains("deep"));

    site.max_product = 10_000;
    let workspace = repo.workspace(&site);
    repo.script(&workspace, "truncate -s 1T sparse");
    let Err(Error::Refused(sentence)) = capture(&workspace, &site) else { panic!() };
    assert!(sentence.contains("sparse"), "{sentence}");
    repo.script(&workspace, "mkdir target; mv sparse target/; for i in 1 2 3; do seq 1000 >n$i; done");
    let Err(Error::Refused(sentence)) = capture(&workspace, &site) else { panic!() };
    assert!(sentence.contains("the patch is larger"), "{sentence}");
    workspace.remove().unwrap();
}
