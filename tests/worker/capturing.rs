//! Patches: what is in them, and that stock git applies them.

use std::fs;

use git_handoff::worktree::capture::capture;
use git_handoff::worktree::salvage::salvage;

use crate::worker::harness::{FORMATS, Repo};

/// Changes of every kind.
const EVERYTHING: &str = r#"
    echo four >>a.txt
    printf 'x\r\nz\r\n' >crlf.txt
    printf '\0\1\2\377' >dir/deep/c.bin; head -c 70000 /dev/urandom >big.bin
    git mv -q dir/b.txt moved.txt 2>/dev/null || mv dir/b.txt moved.txt
    chmod -x run.sh; echo '#!/bin/sh' >new.sh; chmod +x new.sh
    ln -sfn dir link; ln -s /etc/passwd passwd; ln -s nowhere dangling
    rm empty; mkdir empty; echo now >empty/folder; : >void
    echo s >'with  spaces '; echo q >'quo"te'; echo t >"$(printf 'tab\there')"; echo n >"$(printf 'new\nline')"
    echo l >"$(printf 'latin\351')"; printf 'caf\351\n' >latin.txt; echo u >'ünï'; echo b >'back\slash'
    printf 'no newline' >last; printf 'w\r\nv\r\n' >some.win; printf 'n\r\n' >new.win; echo -n >dir/deep/-dash
"#;

#[test]
fn every_kind_of_change_round_trips() {
    for format in FORMATS {
        let repo = Repo::new(format);
        let host = repo.host();
        let workspace = repo.workspace(&host);
        repo.script(&workspace, EVERYTHING);
        let product = capture(&workspace, &host).unwrap().patch.unwrap();
        let patch = host.store.read_blob(product.oid).unwrap();
        repo.script(&workspace, "git add -A");
        let expected = repo.git_in(&workspace.tree(), &["ls-files", "-sz"]);
        assert!(expected.contains("passwd") && expected.contains("empty/folder"));
        for settings in [&[][..], &["core.autocrlf=true", "apply.whitespace=fix", "diff.noprefix=true"]] {
            assert_eq!(repo.applied(&patch, settings), expected);
        }
    }
}

#[test]
fn the_users_settings_do_not_change_a_patch() {
    let script = "echo four >>a.txt; printf 'a\\r\\nb\\r\\n' >win.txt; rm dir/b.txt; cp a.txt copy.txt";
    let repo = Repo::new("sha1");
    let plain = repo.patch(script);
    for (name, value) in [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "touch $CANARY; false"),
        ("diff.renames", "copies"),
        ("diff.context", "0"),
        ("diff.algorithm", "patience"),
        ("diff.orderFile", "/nonexistent"),
        ("color.ui", "always"),
        ("core.abbrev", "4"),
        ("core.quotePath", "false"),
        ("apply.whitespace", "fix"),
        ("core.fsmonitor", "touch $CANARY"),
        ("core.safecrlf", "true"),
    ] {
        repo.git(&["config", name, value]);
    }
    assert_eq!(repo.patch(script), plain);
}

#[test]
fn nothing_changed_is_no_patch() {
    for format in FORMATS {
        let repo = Repo::new(format);
        for script in [
            ":",
            "touch a.txt",
            "echo x >>a.txt; git checkout -q a.txt",
            "echo x >build.log; mkdir target; echo x >target/x; git init -q target/nested; mkdir hollow",
            "echo x >outputs/x; echo x >inputs/x; echo '!inputs' >inputs/.gitignore",
            "git commit -q --allow-empty -m nothing",
            "mkfifo pipe",
        ] {
            assert_eq!(repo.patch(script), None, "{script}");
        }
    }
}

#[test]
fn committed_and_stashed_work_counts_as_the_worktree_shows_it() {
    let repo = Repo::new("sha1");
    let expected = repo.patch("echo x >>a.txt").unwrap();
    assert_eq!(repo.patch("echo x >>a.txt; git commit -qam done").unwrap(), expected);
    assert_eq!(
        repo.patch("echo x >>a.txt; git checkout -qb b; git commit -qam d; git rm -q --cached a.txt").unwrap(),
        expected
    );
    assert_eq!(repo.patch("echo x >>a.txt; git stash -q"), None);
}

#[test]
fn inputs_and_outputs_are_never_in_a_patch() {
    let repo = Repo::new("sha1");
    let expected = repo.patch("printf '!inputs\\n!/outputs\\n!**\\n' >.gitignore").unwrap();
    let script = "printf '!inputs\\n!/outputs\\n!**\\n' >.gitignore; echo x >inputs/x; echo x >outputs/x";
    assert_eq!(repo.patch(script).unwrap(), expected);
    assert_eq!(repo.patch("rmdir inputs; echo >inputs; echo >changed"), repo.patch("echo >changed"));
}

#[test]
fn conversions_of_the_repository_hold() {
    let repo = Repo::new("sha1");
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
    repo.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
    repo.write(".git/info/attributes", "dir/b.txt filter=up\n");
    assert_eq!(repo.patch("touch a.txt dir/b.txt; sleep 0.02"), None);
    let patch = repo.patch("printf 'four\\r\\n' >>a.txt; echo NEW >>dir/b.txt").unwrap();
    let patch = String::from_utf8(patch).unwrap();
    assert!(patch.contains("+four\n") && patch.contains("+new\n"), "{patch}");
}

#[test]
fn more_paths_than_we_keep_are_refused_whether_ignored_or_not() {
    let repo = Repo::new("sha1");
    let long = "python3 -c \"import os
for i in range(14):
    os.mkdir('d' * 250)
    os.chdir('d' * 250)
for i in range(39000): os.close(os.open('x' * 200 + str(i), os.O_CREAT))\"";
    for ignores in [":", "echo 'd*' >.gitignore"] {
        let refused = repo.refused(&format!("{ignores}; {long}"));
        assert_eq!(refused, "the paths of its files exceed 128 MiB");
    }
    // Folders without a file, where nothing is compared with what was there.
    let folders = long.replace("os.close(os.open('x' * 200 + str(i), os.O_CREAT))", "os.mkdir('x' * 200 + str(i))");
    for place in ["outputs", "inputs"] {
        let refused = repo.refused(&format!("cd {place}; {folders}"));
        assert_eq!(refused, "the paths of its files exceed 128 MiB", "{place}");
    }
}

#[test]
fn submodules_are_left_as_they_are_and_what_is_put_into_one_is_refused() {
    let repo = Repo::new("sha1");
    let head = repo.head().to_string();
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},sub")]);
    repo.git(&["commit", "-qm", "sub"]);
    for script in [":", "rm -r sub", "git init -q sub", "rm -r sub/.git"] {
        assert_eq!(repo.patch(script), None, "{script}");
        assert!(repo.patch(&format!("{script}\necho x >>a.txt")).is_some());
    }
    for script in [
        "touch a.txt; echo x >sub/x",
        "rm -r sub/.git; echo x >sub/.git",
        "touch a.txt; git init -q sub; git -C sub config core.fsmonitor 'touch $CANARY'; echo x >sub/x; git -C sub add x
         git -C sub -c user.name=x -c user.email=x commit -qm x",
    ] {
        let refused = repo.refused(script);
        let words = "was changed, which is a submodule's: no patch can carry that; hand it over below outputs/, or change the \
                     submodule in its own repository";
        let (path, why) = refused.split_once("\" ").expect("a quoted path");
        assert!(path.starts_with("\"sub/") && why == words, "{script}: {refused}");
    }
}

#[test]
fn capture_finds_a_change_with_equal_size_and_time() {
    let repo = Repo::new("sha1");
    assert!(repo.patch("touch -r a.txt t; printf 'ONE\\ntwo\\nthree\\n' >a.txt; touch -r t a.txt; rm t").is_some());
    let slow = "sleep 1.1; touch -r a.txt t; printf 'ONE\\ntwo\\nthree\\n' >a.txt; touch -r t a.txt; rm t";
    assert!(repo.patch(slow).is_some());
    assert!(repo.patch("git update-index --assume-unchanged a.txt; echo x >>a.txt").is_some());
    assert!(repo.patch("git update-index --skip-worktree a.txt; echo x >>a.txt").is_some());
}

#[test]
fn salvage_saves_all_readable_files() {
    for format in FORMATS {
        let repo = Repo::new(format);
        let mut host = repo.host();
        host.settings.max_product = 1000;
        let workspace = repo.workspace(&host);
        assert!(salvage(&workspace, &host).unwrap().is_none());
        repo.script(
            &workspace,
            "echo x >>a.txt; rm dir/b.txt; echo i >x.log; echo out >outputs/o; mkdir -p outputs/d; echo p >outputs/d/p.log
             ln -s /etc/passwd outputs/l; head -c 2000 /dev/zero >large; head -c 2000 /dev/zero >outputs/large
             git init -q nested; git -C nested config core.fsmonitor 'touch $CANARY'; echo n >nested/file
             git init -q outputs/nested; echo n >outputs/nested/file; mkdir .GIT; echo >.GIT/config; mkfifo crlf.txt.fifo
             rm crlf.txt; mkfifo crlf.txt; echo in >inputs/secret; echo y >good; mkdir -p 'a[b'; echo z >'a[b/c'",
        );
        let salvaged = salvage(&workspace, &host).unwrap().unwrap();
        let tree = salvaged.tree;
        assert!(!repo.canary().exists());
        workspace.remove().unwrap();
        let listed = repo.git(&["ls-tree", "-r", "--name-only", &tree.to_string()]);
        let added: Vec<&str> = listed.lines().collect();
        for path in ["a.txt", "good", "a[b/c", "outputs/o", "outputs/d/p.log", "outputs/l"] {
            assert!(added.contains(&path), "{path} in {listed}");
        }
        for path in ["dir/b.txt", "large", "x.log", "outputs/large"] {
            assert!(!added.contains(&path), "{path} in {listed}");
        }
        assert!(!listed.contains("nested") && !listed.contains("inputs") && !listed.contains(".GIT"));
        assert_eq!(repo.git(&["cat-file", "-p", &format!("{tree}:a.txt")]), "one\ntwo\nthree\nx");
        repo.git(&["fsck", "--strict"]);
        let only_outputs = repo.workspace(&host);
        fs::write(only_outputs.outputs().join("o"), "o").unwrap();
        assert!(salvage(&only_outputs, &host).unwrap().is_some());
    }
}

/// Three hundred files of all kinds in some folders, and as many that are ignored.
const MANY: &str = r#"
    mkdir -p many/a many/b target
    for n in $(seq 100); do echo $n >many/a/$n; printf "w$n\r\n" >many/b/$n.win; echo same >many/$n; echo $n >target/$n; done
    chmod +x many/1; ln -sfn /etc/passwd many/2; : >many/3; echo l >"$(printf 'many/latin\351')"; echo changed >>a.txt
    printf 'target/\n' >.gitignore
"#;

#[test]
fn capture_of_many_small_files_matches_git() {
    for format in FORMATS {
        let repo = Repo::new(format);
        repo.write(".git/info/attributes", "*.win text eol=crlf\n");
        let host = repo.host();
        let workspace = repo.workspace(&host);
        repo.script(&workspace, MANY);
        let product = capture(&workspace, &host).unwrap().patch.unwrap();
        let salvaged = salvage(&workspace, &host).unwrap().unwrap();
        let patch = host.store.read_blob(product.oid).unwrap();
        repo.script(&workspace, "git add -A");
        let expected = repo.git_in(&workspace.tree(), &["ls-files", "-sz"]);
        assert!(expected.contains("many/b/100.win") && !expected.contains("target/"));
        assert!(repo.applied(&patch, &[]) == expected, "the patch is another one");
        let tree = repo.git(&["ls-tree", "-r", "-z", &salvaged.tree.to_string()]);
        assert!(tree.replace(" blob ", " ").replace('\t', " 0\t") == expected, "{tree}");
    }
}
