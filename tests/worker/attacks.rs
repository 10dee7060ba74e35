//! Hostile worktrees. Each attack has a canary that [`Repo::captured`] checks.

use git_handoff::worktree::capture::{Error, capture};
use git_handoff::worktree::salvage::salvage;

use git_handoff::worktree::workspace::Workspace;

use crate::worker::harness::{Repo, run};

#[test]
fn fake_repository_names_are_rejected() {
    let repo = Repo::new("sha1");
    for (script, subject) in [
        ("mkdir -p x; echo 'elsewhere' >x/.git", "\"x\""),
        ("mkdir -p u/.git; echo x >u/.git/x", "\"u\""),
        (
            "git init -q t; rm -r t/.git/HEAD; ln -s ../HEAD t/.git/; mv t/.git/refs r; ln -s ../../r t/.git/refs",
            "\"t\"",
        ),
        ("mkdir -p y; ln -s ../.git y/.git", "\"y\""),
        ("mkdir -p z/.GiT; echo x >z/.GiT/config", "\"z\""),
        ("mkdir -p w/git~1; echo x >w/git~1/x", "\"w\""),
        ("mkdir .GIT; echo x >.GIT/x", "\".GIT\""),
        ("mkdir -p 'v/.g\u{200c}it'; echo x >'v/.g\u{200c}it/x'", "\"v\""),
    ] {
        let sentence = repo.refused(script);
        let why = "is, or is named like, a nested git repository, which no patch can carry";
        assert_eq!(sentence, format!("{subject} {why}"));
    }
    // In an ignored folder they do not count, unless the worker takes the ignoring back.
    assert_eq!(repo.patch("mkdir -p target/lib/.git; echo x >target/lib/.git/x"), None);
    insta::assert_snapshot!(repo.refused("mkdir -p target/lib/.git; echo >.gitignore"), @r#""target/lib" is, or is named like, a nested git repository, which no patch can carry"#);
}

#[test]
fn a_folder_that_git_takes_for_a_bare_repository_is_refused_by_name() {
    let repo = Repo::new("sha1");
    let settings = "printf '[core]\\n bare = false\\n worktree = ..\\n fsmonitor = touch %s; false\\n' $CANARY";
    for script in [
        "mkdir -p x/objects x/refs; touch x/objects/y x/refs/y; echo 'ref: refs/heads/y' >x/HEAD",
        "mkdir -p x real; touch real/y; ln -s ../real x/objects; ln -s ../real x/refs; ln -s refs/heads/y x/HEAD",
        "mkdir x; echo 'ref: refs/heads/y' >x/HEAD; echo ../objects >x/commondir",
        "mkdir -p x/Objects x/REFS; touch x/Objects/y x/REFS/y; echo 'ref: refs/heads/y' >x/head",
        "git init -q --bare x; touch x/objects/y x/refs/y",
    ] {
        let sentence = repo.refused(&format!("{script}; {settings} >x/config"));
        let why = "has the shape of a bare git repository, whose settings name programs that git would run there";
        assert_eq!(sentence, format!("\"x\" {why}"), "{script}");
    }
    // Folders of these names alone, and what git ignores, are like any other.
    for script in [
        "mkdir -p src/objects src/refs; echo x >src/objects/a; echo x >src/refs/b",
        "mkdir -p src; echo x >src/HEAD; echo x >src/config",
        "mkdir -p target/x/objects target/x/refs; touch target/x/objects/y target/x/refs/y target/x/HEAD; echo x >>a.txt",
    ] {
        assert!(repo.patch(script).is_some(), "{script}");
    }
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
fn links_are_captured_as_links() {
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
    let host = repo.host();
    for (script, did) in [
        ("rm -rf \"$PWD\"", "deleted"),
        ("mv ../tree ../t; ln -s /etc ../tree", "replaced"),
        ("mv ../tree ../t; echo >../tree", "replaced"),
    ] {
        let workspace = repo.workspace(&host);
        repo.script(&workspace, script);
        let Err(Error::Refused(sentence)) = capture(&workspace, &host) else { panic!("{script}") };
        assert_eq!(sentence, format!("the item {did} its own worktree"), "{script}");
        assert!(salvage(&workspace, &host).unwrap().is_none());
        workspace.remove().unwrap();
    }
}

#[test]
fn files_that_git_cannot_store_are_rejected() {
    let repo = Repo::new("sha1");
    let mut host = repo.host();
    insta::assert_snapshot!(repo.refused("rm a.txt; mkfifo a.txt"), @r#""a.txt" is tracked and is no file any more"#);
    let deep =
        "for i in $(seq 300); do mkdir deep-deep-deep-deep && cd -P deep-deep-deep-deep || exit 1; done; echo >x";
    insta::assert_snapshot!(repo.refused(deep), @r#"the path of "deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep/deep-deep-deep-deep" is too long"#);

    host.settings.max_product = 10_000;
    let workspace = repo.workspace(&host);
    repo.script(&workspace, "truncate -s 1T sparse");
    let Err(Error::Refused(sentence)) = capture(&workspace, &host) else { panic!() };
    insta::assert_snapshot!(sentence, @r#""sparse" is larger than 10000 bytes, the most that is taken"#);
    repo.script(&workspace, "mkdir target; mv sparse target/; for i in 1 2 3; do seq 1000 >n$i; done");
    let Err(Error::Refused(second_sentence)) = capture(&workspace, &host) else { panic!() };
    insta::assert_snapshot!(second_sentence, @"the patch is larger than 10000 bytes, the most that is taken");
    workspace.remove().unwrap();
}

#[test]
fn blocking_git_files_are_not_read() {
    let repo = Repo::new("sha1");
    let host = repo.host();
    for (script, path) in [
        ("rm .gitignore; mkfifo .gitignore", ".gitignore"),
        ("mkfifo dir/.gitignore; echo x >>a.txt", "dir/.gitignore"),
        ("rm .gitattributes; mkfifo .gitattributes", ".gitattributes"),
        ("mkdir new; mkfifo new/.gitattributes", "new/.gitattributes"),
        ("mkfifo .gitmodules", ".gitmodules"),
        ("mkfifo outputs/.gitignore; echo x >>a.txt", "outputs/.gitignore"),
        ("mkfifo inputs/.gitattributes; echo x >>a.txt", "inputs/.gitattributes"),
        // Nor does what costs a worker nothing fill the memory: git reads such a file whole.
        ("truncate -s 1T .gitignore; truncate -s 1T large", ".gitignore"),
        ("for i in 1 2 3; do mkdir d$i; truncate -s 2M d$i/.gitignore; done", "d3/.gitignore"),
        ("truncate -s 1T outputs/.gitmodules; echo x >>a.txt", "outputs/.gitmodules"),
    ] {
        let workspace = repo.workspace(&host);
        repo.script(&workspace, script);
        let Err(Error::Refused(sentence)) = capture(&workspace, &host) else { panic!("{script}") };
        let why = "which is no plain file, or has with others of its kind more than 4 MiB";
        let refused = format!("git would read {path:?}, {why}");
        // Which of three comes last is up to the file system.
        let third = |text: &str| text.replace("d1/", "d3/").replace("d2/", "d3/") == refused;
        assert!(third(&sentence), "{script}: {sentence}");
        repo.script(&workspace, "echo work >saved");
        let saved = salvage(&workspace, &host).unwrap().unwrap();
        assert_eq!(repo.git(&["show", &format!("{}:saved", saved.tree)]), "work", "{script}");
        assert!(saved.without.iter().any(|text| third(text)), "{script}: {:?}", saved.without);
        workspace.remove().unwrap();
    }
}

#[test]
fn changed_files_next_to_the_worktree_are_not_read() {
    let repo = Repo::new("sha1");
    let host = repo.host();
    let secret = repo.dir.path().join("secret");
    std::fs::write(&secret, "top secret").unwrap();
    for script in [
        "mkfifo ../index",
        "ln -s \"$CANARY/../secret\" ../index",
        "echo junk >../index",
        "rm ../stamp; mkfifo ../stamp",
        "mkdir ../capture; mkfifo ../capture/index",
        "ln -s /etc ../capture",
        "rm -f ../result.json; mkfifo ../result.json",
        "ln -s \"$CANARY/../secret\" ../result.json",
    ] {
        let workspace = repo.workspace(&host);
        repo.script(&workspace, &format!("{script}\necho x >>a.txt"));
        assert_eq!(workspace.read_result(), None, "{script}");
        let captured = capture(&workspace, &host).unwrap();
        let patch = repo.git(&["cat-file", "blob", &captured.patch.unwrap().oid.to_string()]);
        assert!(patch.contains("+x") && !patch.contains("secret"), "{script}: {patch}");
        workspace.remove().unwrap();
    }
    assert!(secret.exists());
}

#[test]
fn a_folder_that_was_exchanged_for_a_link_is_removed_and_nothing_behind_it() {
    let repo = Repo::new("sha1");
    let host = repo.host();
    let precious = repo.dir.path().join("precious");
    for script in [
        // The attempt's folder, the run's folder, and parts of the attempt's.
        "cd ../..; mv edit%2Fa.1 gone; ln -s \"$CANARY/../precious\" edit%2Fa.1",
        "cd ../../..; mv nightly%401 gone; mkdir nightly%401; ln -s \"$CANARY/../precious\" nightly%401/edit%2Fa.1",
        "rm -rf ../tmp; ln -s \"$CANARY/../precious\" ../tmp",
        "rm -rf ../capture; ln -s \"$CANARY/../precious\" ../capture",
        "rm -rf outputs; ln -s \"$CANARY/../precious\" outputs",
    ] {
        for name in ["capture", "tree", "tmp", "index"] {
            std::fs::create_dir_all(precious.join(name)).unwrap();
            std::fs::write(precious.join(name).join("file"), "precious").unwrap();
        }
        let workspace = repo.workspace(&host);
        repo.script(&workspace, script);
        let captured = capture(&workspace, &host);
        let saved = salvage(&workspace, &host);
        assert!(captured.is_err() || captured.is_ok_and(|captured| captured.outputs.is_empty()), "{script}");
        assert!(saved.is_ok(), "{script}");
        workspace.remove().unwrap();
        for name in ["capture", "tree", "tmp", "index"] {
            assert!(precious.join(name).join("file").exists(), "{script} removed {name}");
        }
        let _ = std::fs::remove_dir_all(repo.dir.path().join("cache"));
    }
}

#[test]
fn a_leftover_that_is_a_link_is_removed_and_nothing_behind_it() {
    let repo = Repo::new("sha1");
    let host = repo.host();
    let precious = repo.dir.path().join("precious");
    std::fs::create_dir_all(precious.join("tree")).unwrap();
    let workspace = repo.workspace(&host);
    repo.script(&workspace, "cd ../..; mv edit%2Fa.1 gone; ln -s \"$CANARY/../precious\" edit%2Fa.1");
    drop(workspace);
    let left = Workspace::leftovers(&host, &run()).unwrap();
    assert_eq!(left.len(), 1);
    assert!(Workspace::reopen(&host, &run(), left[0].clone(), repo.head()).unwrap().is_none());
    assert!(precious.join("tree").exists() && !left[0].dir.exists());
    // A run's folder that is a link is not followed.
    let runs = host.settings.root.join("nightly%401");
    std::fs::rename(&runs, host.settings.root.join("gone")).unwrap();
    std::os::unix::fs::symlink(&precious, &runs).unwrap();
    assert!(Workspace::leftovers(&host, &run()).is_err());
}

#[test]
fn filters_run_wherever_their_programs_lie() {
    let repo = Repo::new("sha1");
    repo.write(".gitattributes", "*.x filter=own\n*.y filter=system\n");
    repo.write("tools/clean.sh", "sed s/a/c/\n");
    repo.commit();
    repo.git(&["config", "filter.own.clean", "sh tools/clean.sh"]);
    repo.git(&["config", "filter.system.clean", "sed s/a/b/"]);
    for (file, line) in [("new.x", "+c\n"), ("new.y", "+b\n")] {
        let patch = String::from_utf8(repo.patch(&format!("echo a >{file}")).unwrap()).unwrap();
        assert!(patch.contains(line), "{patch}");
    }
}

#[test]
fn no_more_unfinished_work_is_saved_than_there_is_room_for() {
    let repo = Repo::new("sha1");
    let mut host = repo.host();
    host.settings.max_salvage = 100_000;
    let workspace = repo.workspace(&host);
    let script = "for i in 1 2 3; do head -c 60000 /dev/zero >big$i; done; echo small >small
        mkdir -p target; head -c 900000 /dev/zero >target/ignored
        head -c 60000 /dev/zero >outputs/big; echo out >outputs/small";
    repo.script(&workspace, script);
    let tree = salvage(&workspace, &host).unwrap().unwrap().tree;
    let names = repo.git(&["ls-tree", "-r", "--name-only", &tree.to_string()]);
    let saved = |name: &str| names.lines().any(|line| line == name);
    assert!(saved("small") && saved("outputs/small") && !saved("outputs/big") && !saved("target/ignored"), "{names}");
    assert_eq!(["big1", "big2", "big3"].into_iter().filter(|name| saved(name)).count(), 1, "{names}");
    workspace.remove().unwrap();
}
