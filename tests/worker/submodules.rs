//! Changes to submodules that are taken: stock git is the judge of what they are, and nothing that
//! a worker leaves is believed.

use std::fs;
use std::path::Path;

use git_handoff::model::name::FilePath;
use git_handoff::worktree::capture::{Captured, Error, capture};
use git_handoff::worktree::host::Host;
use git_handoff::worktree::salvage::salvage;

use super::harness::{FORMATS, Repo};

/// The output that the change to the submodule is.
const PATCH: &str = "submodules/libs/sub.patch";

/// A repository with a submodule at `libs/sub`, which has one of its own that is never checked out.
struct Modules {
    repo: Repo,
    library: Repo,
}

impl Modules {
    fn new(format: &str) -> Self {
        let (repo, library) = (Repo::new(format), Repo::new(format));
        let head = library.head().to_string();
        library.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},inner")]);
        library.git(&["commit", "-qm", "inner"]);
        let url = library.path.to_str().unwrap();
        repo.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", "--name", "lib", url, "libs/sub"]);
        repo.git(&["commit", "-qm", "sub"]);
        Self { repo, library }
    }

    fn host(&self) -> Host {
        let mut host = self.repo.host();
        (host.settings.submodules, host.settings.capture_submodules) = (true, true);
        host
    }

    /// Runs a script in a fresh worktree and captures it; returns as well what stock git makes of
    /// the submodule's files.
    fn captured(&self, host: &Host, script: &str) -> (Result<Captured, Error>, Option<String>) {
        let workspace = self.repo.workspace(host);
        self.repo.script(&workspace, script);
        let _ = fs::remove_file(self.repo.canary());
        let captured = capture(&workspace, host);
        assert!(!self.repo.canary().exists(), "{script} was executed by the capture");
        let state = captured.is_ok().then(|| self.seen_by_git(&workspace.tree().join("libs/sub")));
        workspace.remove().unwrap();
        (captured, state)
    }

    /// Puts files into a clean clone of the submodule, in the place of its own, and returns what
    /// git then has in the index.
    fn seen_by_git(&self, files: &Path) -> String {
        let (dir, clone) = self.clean();
        for entry in fs::read_dir(&clone).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != ".git") {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
        let copy = r#"cd "$1" && find . -mindepth 1 -maxdepth 1 ! -name .git -exec cp -a {} "$2" \;"#;
        let (from, to) = (files.to_str().unwrap(), clone.to_str().unwrap());
        let copied = std::process::Command::new("sh").args(["-ec", copy, "-", from, to]).status().unwrap();
        assert!(copied.success());
        self.index(&clone, dir)
    }

    fn clean(&self) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir_in(self.repo.dir.path()).unwrap();
        let clone = dir.path().join("clone");
        self.library.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
        (dir, clone)
    }

    /// Returns `<mode> <id> <path>` of every file of a clone; the commit of what is never checked
    /// out stays what it is.
    fn index(&self, clone: &Path, _kept: tempfile::TempDir) -> String {
        fs::create_dir_all(clone.join("inner")).unwrap();
        self.library.git_in(clone, &["add", "-A"]);
        self.library.git_in(clone, &["ls-files", "-sz"])
    }

    /// Applies a patch to a clean clone in both ways, and returns what it then holds.
    fn applied(&self, patch: &[u8]) -> String {
        let both = [&["apply"][..], &["apply", "--index"]].map(|how| {
            let (dir, clone) = self.clean();
            let file = dir.path().join("patch");
            fs::write(&file, patch).unwrap();
            self.library.git_in(&clone, &[how, &["--whitespace=nowarn", file.to_str().unwrap()]].concat());
            self.index(&clone, dir)
        });
        assert_eq!(both[0], both[1]);
        both[0].clone()
    }

    fn refused(&self, script: &str) -> String {
        match self.captured(&self.host(), script).0 {
            Err(Error::Refused(sentence)) => sentence,
            other => panic!("{script}: {other:?}"),
        }
    }
}

/// Harmless operations of workers in submodules.
const EDITS: [&str; 13] = [
    "echo x >>libs/sub/a.txt",
    "rm libs/sub/a.txt libs/sub/dir/deep/c.bin",
    "printf '\\0\\1\\377\\r\\n' >libs/sub/dir/deep/c.bin; head -c 100000 /dev/urandom >libs/sub/new.bin",
    "chmod +x libs/sub/a.txt; chmod -x libs/sub/run.sh",
    "ln -sf /etc/passwd libs/sub/link; ln -s dir libs/sub/folder; rm libs/sub/empty; ln -s a.txt libs/sub/empty",
    "cd libs/sub; echo x >'a b\"c\\d'; echo x >'new\nline'; echo x >'tab\there'; mkdir -p 'ü/*?['; echo x >'ü/*?[/!x'",
    "echo x >libs/sub/ignored.log; mkdir -p libs/sub/target; echo x >libs/sub/target/x; echo x >libs/sub/taken.o",
    "cd libs/sub; mv dir other; echo '*.o' >>.gitignore; echo x >x.o; mkdir outputs inputs; echo x >outputs/x; echo x >inputs/y",
    "cd libs/sub; git commit -qm x --allow-empty; echo y >>a.txt; git commit -qam y; git branch other; echo z >>a.txt",
    "cd libs/sub; rm -r .git inner/.git; git init -q; git add -A; git -c user.name=x -c user.email=x commit -qm x; echo y >>a.txt; git add -A
     git -c user.name=x -c user.email=x commit -qm y; git branch other; echo z >>a.txt",
    "find libs/sub -mindepth 1 -delete",
    "printf 'no end' >libs/sub/a.txt; printf 'x\\r\\ny\\n' >libs/sub/crlf.txt; printf 'a\\r\\nb\\r\\n' >libs/sub/some.win",
    "rm libs/sub/a.txt; mkdir libs/sub/a.txt; echo x >libs/sub/a.txt/x; rm -r libs/sub/dir; echo x >libs/sub/dir",
];

#[test]
fn submodule_change_is_a_patch_for_stock_git() {
    for format in FORMATS {
        let modules = Modules::new(format);
        let host = modules.host();
        for script in EDITS {
            let (captured, state) = modules.captured(&host, script);
            let captured = captured.unwrap();
            assert!(captured.patch.is_none() && captured.outputs.is_empty(), "{script}");
            assert_eq!(captured.submodules.keys().map(FilePath::as_str).collect::<Vec<_>>(), [PATCH], "{script}");
            let product = captured.submodules.values().next().unwrap();
            let patch = host.store.read_blob(product.oid).unwrap();
            assert_eq!(product.sha256, git_handoff::model::digest::Digest::compute(&patch));
            assert_eq!(modules.applied(&patch), state.unwrap(), "{format} {script}");
        }
    }
}

#[test]
fn unchanged_submodule_makes_no_product() {
    let modules = Modules::new("sha1");
    let host = modules.host();
    for script in
        [":", "touch libs/sub/a.txt", "echo x >libs/sub/x.log", "git init -q libs/sub", "rm -r libs/sub/inner"]
    {
        let captured = modules.captured(&host, script).0.unwrap();
        assert!(captured.submodules.is_empty() && captured.patch.is_none(), "{script}");
    }
    let captured = modules.captured(&host, "echo x >>a.txt; echo x >>libs/sub/a.txt").0.unwrap();
    let patch = host.store.read_blob(captured.patch.unwrap().oid).unwrap();
    let patch = String::from_utf8_lossy(&patch).into_owned();
    assert!(patch.contains("b/a.txt") && !patch.contains("libs") && !patch.contains("160000"), "{patch}");
    assert_eq!(captured.submodules.len(), 1);
}

#[test]
fn salvaged_submodule_change_equals_the_product() {
    for format in FORMATS {
        let modules = Modules::new(format);
        let mut host = modules.host();
        for captured in [true, false] {
            host.settings.capture_submodules = captured;
            let workspace = modules.repo.workspace(&host);
            let script = "echo x >>a.txt; mkdir -p outputs/submodules/libs/sub.patch; echo x >outputs/submodules/libs/sub.patch/y
                 echo PRECIOUS >>libs/sub/a.txt; echo PRECIOUS >libs/sub/new";
            modules.repo.script(&workspace, script);
            let state = modules.seen_by_git(&workspace.tree().join("libs/sub"));
            let saved = salvage(&workspace, &host).unwrap().unwrap();
            assert_eq!(saved.without, Vec::<String>::new());
            let patch = modules.repo.git(&["rev-parse", &format!("{}:outputs/{PATCH}", saved.tree)]);
            let patch = host.store.read_blob(patch.parse().unwrap()).unwrap();
            assert_eq!(modules.applied(&patch), state);
            workspace.remove().unwrap();
        }
    }
}

#[test]
fn unsaved_submodule_work_is_reported() {
    let modules = Modules::new("sha1");
    let nested = "in the submodule \"libs/sub\": \"other\" is, or is named like, a nested git repository, which no patch \
                  can carry";
    let removed = "the submodule \"libs/sub\" was removed or replaced";
    for (script, why, most) in [
        ("mkdir -p libs/sub/other/.git; echo x >libs/sub/other/.git/x", nested, 1 << 20),
        ("git init -q libs/sub/other; echo x >libs/sub/other/x", "\"libs/sub/other\", a git repository", 1 << 20),
        ("rm -r libs/sub; echo x >libs/sub", removed, 1 << 20),
        ("seq 4000 >libs/sub/new", "submodules/libs/sub.patch, which is larger than what may be saved", 9000),
        (
            "printf '%s%s\\n' ghp_ Q7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2J3k4 >libs/sub/new",
            "secret-found: libs/sub/new:1 github-pat",
            1 << 20,
        ),
    ] {
        let mut host = modules.host();
        host.settings.max_salvage = most;
        let workspace = modules.repo.workspace(&host);
        modules.repo.script(&workspace, &format!("echo x >>a.txt; {script}"));
        let saved = salvage(&workspace, &host).unwrap().unwrap();
        assert_eq!(saved.without, [why], "{script}");
        assert!(modules.repo.git(&["show", &format!("{}:a.txt", saved.tree)]).ends_with('x'), "{script}");
        workspace.remove().unwrap();
    }
}

/// The ways to take the change to a submodule, at the top of the worktree.
const TAKEN: [&str; 5] = [
    "git -C libs/sub apply --index \"$PWD/inputs/change\"",
    "cd libs/sub && git apply ../../inputs/change",
    "git submodule foreach -q 'git apply --index \"$toplevel/inputs/change\"'",
    "git -C libs/sub apply --index \"$PWD/inputs/change\"; git -C libs/sub commit -qam taken; git commit -qam taken",
    "git apply --directory=libs/sub inputs/change",
];

#[test]
fn an_item_takes_the_change_to_a_submodule_in_each_way_that_git_has() {
    for format in FORMATS {
        let modules = Modules::new(format);
        let host = modules.host();
        let change = "echo x >>libs/sub/a.txt; echo new >libs/sub/new; rm libs/sub/dir/b.txt";
        let product = *modules.captured(&host, change).0.unwrap().submodules.values().next().unwrap();
        for script in TAKEN {
            let workspace = modules.repo.workspace(&host);
            std::fs::write(workspace.inputs().join("change"), host.store.read_blob(product.oid).unwrap()).unwrap();
            modules.repo.script(&workspace, script);
            let captured = capture(&workspace, &host).unwrap();
            assert!(captured.patch.is_none(), "{script}");
            assert_eq!(captured.submodules.values().next().unwrap().sha256, product.sha256, "{script}");
            workspace.remove().unwrap();
        }
    }
}

/// A patch to a file that the submodule has, and not the repository.
const OTHER: &str = "diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-1\n+2\n";

/// git commands in a submodule's folder, which must not affect the outer repository.
const INSIDE: [&str; 6] = [
    "git -C \"$SUB\" apply \"$PWD/inputs/change\"",
    "git -C \"$SUB\" apply --index \"$PWD/inputs/change\"",
    "cd \"$SUB\" && git apply \"$OLDPWD/inputs/change\"",
    "echo x >>a.txt; git add a.txt; git -C \"$SUB\" commit -qm x",
    "git -C \"$SUB\" log -1",
    "cd \"$(dirname \"$SUB\")\" && git submodule foreach -q 'git apply \"$PWD/nothing\"'",
];

#[test]
fn git_fails_in_the_folder_of_a_submodule_that_is_not_checked_out() {
    for format in FORMATS {
        let modules = Modules::new(format);
        // The second is a submodule of one that is checked out.
        for (host, sub) in [(modules.repo.host(), "libs/sub"), (modules.host(), "libs/sub/inner")] {
            for script in INSIDE {
                let workspace = modules.repo.workspace(&host);
                std::fs::write(workspace.inputs().join("change"), OTHER).unwrap();
                modules.repo.script(&workspace, &format!("SUB={sub}; if ({script}); then exit 9; fi"));
                let captured = capture(&workspace, &host).unwrap();
                assert_eq!(captured.patch.is_some(), script.starts_with("echo x >>a.txt"), "{script}");
                assert!(captured.submodules.is_empty(), "{script}");
                workspace.remove().unwrap();
            }
        }
    }
}

#[test]
fn submodules_do_not_disturb_the_repository_around_them() {
    for format in FORMATS {
        let modules = Modules::new(format);
        for host in [modules.repo.host(), modules.host()] {
            let workspace = modules.repo.workspace(&host);
            let script = "test -z \"$(git status --porcelain)\"; test -z \"$(git -C libs/sub status --porcelain)\"
                git diff --quiet; git diff-index --quiet HEAD; git submodule status >/dev/null
                echo x >>a.txt; git stash -qu; test -z \"$(git status --porcelain)\"; git stash pop -q; git add -A
                git commit -qm one; echo y >>a.txt; git commit -qam two; git clean -ffdxq -e inputs -e outputs
                git reset -q --hard; git checkout -q .; test -z \"$(git status --porcelain)\"
                test \"$(git diff --name-only HEAD~2)\" = a.txt";
            modules.repo.script(&workspace, script);
            let captured = capture(&workspace, &host).unwrap();
            assert!(captured.patch.is_some() && captured.submodules.is_empty());
            workspace.remove().unwrap();
        }
    }
}

#[test]
fn a_submodule_that_is_another_one_is_refused() {
    let modules = Modules::new("sha1");
    let removed = "the submodule \"libs/sub\" was removed or replaced";
    let elsewhere = "the submodule \"libs/sub\" was made to point elsewhere";
    let nested = |name: &str| {
        format!(
            "in the submodule \"libs/sub\": {name:?} is, or is named like, a nested git repository, which no patch can \
             carry"
        )
    };
    let changed = |path: &str| {
        format!(
            "{path:?} was changed, which is a submodule's: no patch can carry that; hand it over below outputs/, or \
             change the submodule in its own repository"
        )
    };
    let ignored = "in the submodule \"libs/sub\": git would read \"new/.gitignore\", which is no plain file, or has with \
                   others of its kind more than 4 MiB";
    for (script, why) in [
        ("rm -r libs/sub", removed),
        ("rm -r libs/sub; echo x >libs/sub", removed),
        ("mv libs/sub away; ln -s ../away libs/sub", removed),
        ("mv libs away; ln -s away libs", removed),
        ("rm -r libs; echo x >libs", removed),
        ("rm -r libs/sub/.git; echo \"gitdir: $HOME/elsewhere\" >libs/sub/.git; echo x >>libs/sub/a.txt", elsewhere),
        ("rm -r libs/sub/.git; ln -s ../../.git libs/sub/.git; echo x >>libs/sub/a.txt", elsewhere),
        ("mkdir -p libs/sub/other/.git; echo x >libs/sub/other/.git/x", &nested("other")),
        ("mkdir libs/sub/.GIT; echo x >libs/sub/.GIT/config", &nested(".GIT")),
        ("mkdir -p libs/sub/inner; echo x >libs/sub/inner/x", &changed("libs/sub/inner/x")),
        ("rm -r libs/sub/inner/.git; echo x >libs/sub/inner/.git", &changed("libs/sub/inner/.git")),
        ("rm -r libs/sub/inner/.git; ln -s ../../../.git libs/sub/inner/.git", &changed("libs/sub/inner/.git")),
        ("rm -rf libs/sub/inner; echo x >libs/sub/inner", &changed("libs/sub/inner")),
        (
            "rm libs/sub/a.txt; mkfifo libs/sub/a.txt",
            "in the submodule \"libs/sub\": \"a.txt\" is tracked and is no file any more",
        ),
        ("mkdir libs/sub/new; mkfifo libs/sub/new/.gitignore; echo x >libs/sub/new/x", ignored),
    ] {
        let refused = modules.refused(script);
        assert_eq!(refused, why, "{script}");
    }
}

#[test]
fn nothing_that_a_worker_leaves_in_a_submodule_is_run_or_believed() {
    let modules = Modules::new("sha1");
    let host = modules.host();
    let hostile = "cd libs/sub; git init -q; hook=\"touch '$CANARY'\"
        git config core.fsmonitor \"$hook; false\"; git config filter.x.clean \"$hook; cat\"; git config diff.x.textconv \"$hook; cat\"
        git config diff.x.command \"$hook\"; git config core.hooksPath .; git config core.excludesFile all; git config core.worktree /
        git config core.attributesFile attributes; printf '*' >all; echo '* filter=x diff=x' >attributes
        for name in pre-commit post-index-change fsmonitor-watchman; do printf '#!/bin/sh\\n%s\\n' \"$hook\" >$name; chmod +x $name; done
        printf '%s\\n' \"$HOME\" >.git/objects/info/alternates; printf '*\\n' >.git/info/exclude
        echo '* filter=x diff=x ident export-subst' >.gitattributes
        echo '$Id$' >ident; echo x >>a.txt; ln -s /etc secrets; ln -s ../../a.txt up";
    let (captured, _) = modules.captured(&host, hostile);
    let captured = captured.unwrap();
    let patch = host.store.read_blob(captured.submodules.values().next().unwrap().oid).unwrap();
    let patch = String::from_utf8_lossy(&patch).into_owned();
    for line in ["+++ b/a.txt", "+$Id$", "+++ b/all", "+../../a.txt", "+/etc", "new file mode 120000"] {
        assert!(patch.contains(line), "{line}: {patch}");
    }
    assert!(!patch.contains("root:"), "{patch}");
}

#[test]
fn nothing_is_looked_at_where_a_link_above_leads() {
    let modules = Modules::new("sha1");
    let outside = modules.repo.dir.path().join("beside");
    fs::create_dir_all(outside.join("sub/inner")).unwrap();
    fs::write(outside.join("sub/private-name"), "").unwrap();
    fs::write(outside.join("sub/inner/private-name"), "").unwrap();
    let (bare, mut checked_out, whole) = (modules.repo.host(), modules.repo.host(), modules.host());
    checked_out.settings.submodules = true;
    for host in [&bare, &checked_out, &whole] {
        for script in ["ln -s \"$OUT\" libs", "echo x >libs", "mkdir libs; ln -s \"$OUT/sub\" libs/sub"] {
            let script = format!("OUT='{}'; rm -r libs; {script}", outside.display());
            let refused = match modules.captured(host, &script).0 {
                Err(Error::Refused(sentence)) => sentence,
                other => panic!("{script}: {other:?}"),
            };
            let (changed, replaced) = (
                "\"libs/sub\" was changed, which is a submodule's: no patch can carry that; hand it over below outputs/, or \
                 change the submodule in its own repository",
                "the submodule \"libs/sub\" was removed or replaced",
            );
            assert!([changed, replaced].contains(&refused.as_str()), "{script}: {refused}");
        }
        // An empty folder that is gone has lost nothing.
        let workspace = modules.repo.workspace(host);
        modules.repo.script(&workspace, "rm -r libs");
        assert_eq!(capture(&workspace, host).is_ok(), !host.settings.submodules);
        workspace.remove().unwrap();
    }
}

#[test]
fn limits_and_secrets_are_those_of_every_product() {
    let modules = Modules::new("sha1");
    let secret = "printf 'one\\n%s%s\\n' ghp_ Q7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2J3k4 >libs/sub/config.toml";
    match modules.captured(&modules.host(), secret).0 {
        Err(Error::Secret(found)) => assert_eq!(found.to_string(), "secret-found: libs/sub/config.toml:2 github-pat"),
        other => panic!("{other:?}"),
    }
    let mut host = modules.host();
    host.settings.max_product = 1000;
    let large = modules.captured(&host, "head -c 2000 /dev/zero >libs/sub/large").0.unwrap_err().to_string();
    insta::assert_snapshot!(large, @r#"in the submodule "libs/sub": "large" is larger than 1000 bytes, the most that is taken"#);
    let second_large = modules.captured(&host, "seq 400 >libs/sub/large").0.unwrap_err().to_string();
    insta::assert_snapshot!(second_large, @r#"in the submodule "libs/sub": "large" is larger than 1000 bytes, the most that is taken"#);
}

#[test]
fn a_worktree_whose_submodule_was_changed_is_clean_when_it_is_used_again() {
    let modules = Modules::new("sha1");
    let host = modules.host();
    for _ in 0..3 {
        let workspace = modules.repo.workspace(&host);
        let sub = workspace.tree().join("libs/sub");
        assert_eq!(fs::read(sub.join("a.txt")).unwrap(), b"one\ntwo\nthree\n");
        assert!(!sub.join("new").exists());
        assert_eq!(modules.repo.git_in(&sub, &["log", "--format=%s"]), "inner\nbase");
        assert_eq!(modules.repo.git_in(&sub, &["status", "--porcelain"]), "");
        assert!(capture(&workspace, &host).unwrap().submodules.is_empty());
        modules.repo.script(&workspace, "cd libs/sub; git init -q; echo x >>a.txt; echo x >new; rm empty");
        assert_eq!(capture(&workspace, &host).unwrap().submodules.len(), 1);
        workspace.recycle(&host).unwrap_or_else(|workspace| workspace.remove().unwrap());
    }
}
