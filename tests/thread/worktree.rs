//! A working tree is restored exactly in another clone, and never overwrites local changes.

use serde_json::Value;

use super::{ends, json, repository, save, text, traces, with_input};
use crate::common::Environment;
use crate::common::report::{find_line, verdict};

/// A sender with every kind of change in its working tree, and a clone of its commit in `other`.
fn changed() -> Environment {
    let env = Environment::empty();
    env.shell("", "git init --quiet repo").success();
    let prepare = "
        mkdir -p sub && printf 'one\\n' >staged && cp staged unstaged && cp staged deleted && cp staged sub/moved
        printf 'crlf\\r\\nlines\\r\\n' >crlf && printf '*.txt text eol=crlf\\nfiltered filter=bad\\n' >.gitattributes
        printf '#!/bin/sh\\n' >script && printf 'a\\nb\\n' >eol.txt && ln -s staged link && printf 'x' >filtered
        printf 'file-or-folder' >turned && printf '*.env\\nbuild/\\n' >.gitignore && printf 'kept' >forced.env
        git add --all 2>/dev/null && git add --force forced.env && git commit --quiet --message Start";
    env.shell("repo", prepare).success();
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    let change = "
        printf 'two\\n' >staged && git add staged && printf 'two\\n' >unstaged && rm deleted && git mv sub/moved sub/there
        chmod +x script && ln -sf crlf link && printf '\\0\\377\\r\\n' >'new \\303\\244 name' && mkdir -p deep/er && printf 'n' >deep/er/new
        rm turned && mkdir turned && printf 'inside' >turned/inside && printf 'mixed\\r\\nends\\n' >mixed.txt
        printf 'staged then changed' >both && git add both && printf 'changed' >both && printf 'secret' >secret.env
        mkdir build && printf 'object' >build/out && printf 'changed' >forced.env && git config filter.bad.clean 'touch ../pwned'
        # So that git looks at it again, and does not by chance take it for unchanged.
        touch -d '2001-01-01 00:00:00' filtered";
    env.shell("repo", change).success();
    env
}

fn offer(env: &Environment) {
    let descriptor = env.handoff(["offer", "t"]).success();
    env.write("descriptor.json", &descriptor);
}

const ADOPT: [&str; 5] = ["adopt", "../descriptor.json", "--as", "u", "--checkout"];

/// Lists every file that is not ignored, with mode, target and bytes.
fn files(env: &Environment, dir: &str) -> String {
    let list = "find . -path ./.git -prune -o ! -name secret.env ! -path './build*' \\( -type l -printf '%p -> %l\\n' \
        -o -type f -printf '%p %m ' -exec sha256sum {} ';' \\) | sort";
    env.shell(dir, list).success()
}

#[track_caller]
fn refused(env: &Environment, code: &str) {
    let before = (
        traces(env, "other"),
        env.shell("other", "find . -path ./.git -prune -o -type f -exec sha256sum {} + | sort").success(),
    );
    let output = env.handoff_in("other", ["--json"].iter().chain(&ADOPT)).exit(1);
    assert_eq!(json(&output.stderr)["code"], code, "{output}");
    let after = (
        traces(env, "other"),
        env.shell("other", "find . -path ./.git -prune -o -type f -exec sha256sum {} + | sort").success(),
    );
    assert_eq!(after, before);
}

#[test]
fn it_comes_back_exactly_on_another_clone() {
    let env = changed();
    let before = (files(&env, "repo"), env.git(["status", "--porcelain"]).success());
    // git's own look at the status runs filters; ours runs none.
    let pwned = env.path().join("pwned");
    std::fs::remove_file(&pwned).expect("git ran the filter");
    let saved = save(&env, "t", b"state", &["--worktree"]);
    assert!(!pwned.exists());
    assert_eq!((files(&env, "repo"), env.git(["status", "--porcelain"]).success()), before);
    // Ignored files are named with their hashes, and nothing of their bytes is in the repository.
    let log = json(&env.handoff(["--json", "thread", "log", "t"]).success());
    let ignored: Vec<&str> =
        log["worktree"]["ignored"].as_array().expect("a list").iter().map(|i| text(&i["path"])).collect();
    assert_eq!(ignored, ["build/out", "secret.env"]);
    let secret = env.shell("repo", "printf secret | git hash-object --stdin").success();
    assert_ne!(env.git(["cat-file", "-e", secret.trim()]).status, Some(0));
    offer(&env);
    // On the other side, line ends are converted differently.
    env.git_in("other", ["config", "core.autocrlf", "true"]).success();
    let adopted = json(&env.handoff_in("other", ADOPT).success());
    assert_eq!(adopted["checked_out"], true);
    assert_eq!(files(&env, "other"), files(&env, "repo"));
    assert!(!env.path().join("other/secret.env").exists());
    let verified = env.handoff_in("other", ["thread", "verify", "u"]).exit(0);
    assert_eq!(verdict(&verified.stdout), "✓ INTACT  clock pinned");
    assert_eq!(env.git_in("other", ["fsck", "--strict"]).exit(0).stderr, "");
    assert_eq!(env.git_in("other", ["diff", "--cached", "--name-only"]).success(), "");
    assert_ne!(saved["commit"], Value::Null);
    // Doing it again changes nothing.
    assert_eq!(env.handoff_in("other", ["resume", "u", "--checkout"]).exit(0).raw, b"state");
    assert_eq!(files(&env, "other"), files(&env, "repo"));
}

#[test]
fn it_comes_back_with_a_git_that_knows_no_source_of_attributes() {
    let env = changed();
    let real = env.shell("", "command -v git").success();
    let old = format!(
        "#!/bin/sh\nfor word in \"$@\"; do case $word in --attr-source*) echo \"unknown option: $word\" >&2; exit 129;; esac; done\n\
        exec {} \"$@\"\n",
        real.trim()
    );
    env.write("old/git", &old);
    let handoff = |dir: &str, args: &str| {
        env.shell(dir, &format!("chmod +x ../old/git && PATH=$PWD/../old:$PATH git-handoff {args}"))
    };
    handoff("repo", "checkpoint t --state staged --worktree").success();
    offer(&env);
    env.git_in("other", ["config", "core.autocrlf", "true"]).success();
    handoff("other", "adopt ../descriptor.json --as u --checkout").success();
    assert_eq!(files(&env, "other"), files(&env, "repo"));
}

#[test]
fn the_receivers_own_changes_stay() {
    let env = changed();
    save(&env, "t", b"state", &["--worktree"]);
    offer(&env);
    // Their own file, a change to what the sender left alone, and the same change as the sender's.
    env.shell("other", "printf mine >mine && printf mine >crlf && printf 'two\\n' >staged && printf mine >own.env")
        .success();
    env.handoff_in("other", ADOPT).success();
    for (file, holds) in
        [("mine", "mine"), ("crlf", "mine"), ("own.env", "mine"), ("unstaged", "two\n"), ("turned/inside", "inside")]
    {
        assert_eq!(std::fs::read_to_string(env.path().join("other").join(file)).expect("it is there"), holds, "{file}");
    }
}

#[test]
fn checkout_preserves_a_repository_of_the_receiver() {
    let env = changed();
    save(&env, "t", b"state", &["--worktree"]);
    offer(&env);
    let nested = "git init --quiet empty && git init --quiet full && cd full && echo mine >file && git add file && \
        git commit --quiet --message Mine && echo more >>file";
    env.shell("other", nested).success();
    env.handoff_in("other", ADOPT).success();
    assert_eq!(std::fs::read_to_string(env.path().join("other/deep/er/new")).expect("it is there"), "n");
    assert_eq!(env.git_in("other/full", ["status", "--porcelain"]).success(), " M file\n");
    assert!(env.path().join("other/empty/.git").exists());
    env.handoff_in("other", ["resume", "u", "--checkout"]).success();
}

#[test]
fn checkout_refuses_when_a_file_is_in_the_way() {
    for (way, code) in [
        ("printf mine >unstaged", "local-changes"),
        ("printf mine >deleted", "local-changes"),
        ("printf mine >staged && git add staged", "local-changes"),
        ("mkdir deep && printf mine >deep/er", "local-changes"),
        ("printf mine >both", "local-changes"),
        ("rm turned && mkdir turned && printf mine >turned/inside", "local-changes"),
        ("printf both >.git/info/exclude && printf mine >both", "local-changes"),
        ("git init --quiet deep", "local-changes"),
        ("rm unstaged && git init --quiet unstaged", "checkout"),
        ("git commit --quiet --allow-empty --message Next", "other-base"),
    ] {
        let env = changed();
        save(&env, "t", b"state", &["--worktree"]);
        offer(&env);
        env.shell("other", way).success();
        refused(&env, code);
    }
}

#[test]
fn a_checkpoint_without_a_working_tree_cannot_be_checked_out() {
    let env = changed();
    save(&env, "t", b"state", &[]);
    offer(&env);
    refused(&env, "no-worktree");
    let before = traces(&env, "repo");
    ends(&env, 1, &["resume", "t", "--checkout"]);
    assert_eq!(traces(&env, "repo"), before);
}

#[test]
fn other_worktrees_of_the_repository_are_left_out_and_stay() {
    for ignored in ["", "echo /.claude/ >>.git/info/exclude;"] {
        let env = changed();
        let add = format!(
            "{ignored} git worktree add --quiet --detach '.claude/worktrees/a [*]' && echo x >'.claude/worktrees/a [*]/new' && echo kept >.claude/notes &&
             git worktree add --quiet --detach gone && rm -r gone && git worktree add --quiet --detach ../outside"
        );
        env.shell("repo", &add).success();
        let state = with_input(&env, "repo", &["checkpoint", "t", "--state", "-", "--worktree"], b"state");
        assert!(state.status.success(), "{}", String::from_utf8_lossy(&state.stderr));
        let made: Value = serde_json::from_slice(&state.stdout).expect("it is JSON");
        assert_eq!(made["left_out"], serde_json::json!([".claude/worktrees/a [*]"]));
        let stderr = String::from_utf8_lossy(&state.stderr).into_owned();
        assert_eq!(stderr, "left out: .claude/worktrees/a [*], another worktree of this repository\n");
        offer(&env);
        // Neither are those of the adopter in the way.
        let script =
            "git worktree add --quiet --detach .claude/worktrees/mine && echo mine >.claude/worktrees/mine/own";
        env.shell("other", script).success();
        env.handoff_in("other", ADOPT).success();
        let there = |path: &str| env.path().join("other").join(path).exists();
        assert!(there("deep/er/new") && there(".claude/worktrees/mine/own") && !there(".claude/worktrees/a [*]"));
        assert_eq!(there(".claude/notes"), ignored.is_empty());
    }
}

#[test]
fn changes_in_a_submodule_are_refused_and_its_commit_is_saved() {
    let with_submodule = || {
        let env = repository();
        let add = "git init --quiet ../lib && cd ../lib && echo one >lib.txt && echo '*.o' >.gitignore && git add --all && git commit --quiet --message Lib
            cd ../repo && git -c protocol.file.allow=always submodule --quiet add ../lib 'vend [x]' && git commit --quiet --message Sub";
        env.shell("repo", add).success();
        env
    };
    for change in ["echo more >>lib.txt", "echo new >new.txt", "rm lib.txt", "echo more >>lib.txt; git add lib.txt"] {
        let env = with_submodule();
        env.shell("repo", &format!("cd 'vend [x]'; {change}")).success();
        env.git(["config", "submodule.vend [x].ignore", "all"]).success();
        let before = traces(&env, "repo");
        let output = with_input(&env, "repo", &["checkpoint", "t", "--state", "-", "--worktree"], b"state");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let why = "error: the submodule vend [x] has uncommitted or new files, which no checkpoint holds; commit or \
                   stash them there\n";
        assert_eq!((output.status.code(), stderr.as_str()), (Some(1), why), "{change}");
        assert_eq!(traces(&env, "repo"), before, "{change}");
        // Without the files it is a checkpoint like any other.
        save(&env, "t", b"state", &[]);
    }
    let commit = "echo more >>lib.txt; git commit --quiet --all --message More";
    for (change, folder) in [(commit, "."), (&format!("{commit}; git -C .. add ."), "."), (commit, "below")] {
        let env = with_submodule();
        env.shell("repo", &format!("mkdir -p below; cd 'vend [x]'; {change}")).success();
        let head = env.git_in("repo/vend [x]", ["rev-parse", "HEAD"]).success();
        let words = ["checkpoint", "t", "--state", "-", "--worktree"];
        let output = with_input(&env, &format!("repo/{folder}"), &words, b"state");
        let why = format!(
            "error: the submodule vend [x] is at the commit {}, which no remote-tracking branch of it contains, and a \
             checkpoint holds only its name; push it there\n",
            head.trim()
        );
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(1), why.into()), "{change}");
        env.git_in("repo/vend [x]", ["push", "--quiet", "origin", "HEAD:refs/heads/more"]).success();
        save(&env, "t", b"state", &["--worktree"]);
    }
    for change in ["true", "echo x >built.o", &format!("{commit}; git push --quiet origin HEAD:refs/heads/more")] {
        let env = with_submodule();
        env.shell("repo", &format!("cd 'vend [x]'; {change}")).success();
        save(&env, "t", b"state", &["--worktree"]);
        let head = env.git_in("repo/vend [x]", ["rev-parse", "HEAD"]).success();
        let log = json(&env.handoff(["--json", "thread", "log", "t"]).success());
        let tree = text(&log["worktree"]["tree"]);
        assert!(env.git(["ls-tree", tree]).success().contains(head.trim()), "{change}");
    }
}

/// A sender whose submodule is at a commit that its own HEAD does not name, and a clone of HEAD in
/// `other`.
fn with_moved_submodule() -> (Environment, String) {
    let env = repository();
    let add = "set -e; git config --global protocol.file.allow always; lib=$(dirname \"$PWD\")/lib
        git init --quiet ../lib; cd ../lib; echo one >lib.txt; git add --all; git commit --quiet --message Lib
        cd ../repo; git submodule --quiet add \"$lib\" vend; git commit --quiet --message Sub
        git clone --quiet --recurse-submodules . ../other; cd ../lib; echo two >lib.txt; git commit --quiet --all --message More
        cd ../repo/vend; git pull --quiet";
    env.shell("repo", add).success();
    save(&env, "t", b"state", &["--worktree"]);
    offer(&env);
    let commit = env.git_in("repo/vend", ["rev-parse", "HEAD"]).success();
    (env, commit.trim().to_owned())
}

#[test]
fn a_submodule_is_checked_out_at_the_saved_commit_if_it_is_here() {
    let (env, commit) = with_moved_submodule();
    env.git_in("other/vend", ["fetch", "--quiet", "origin"]).success();
    let adopted = json(&env.handoff_in("other", ["--json"].iter().chain(&ADOPT)).success());
    assert!(adopted.get("submodules").is_none(), "{adopted}");
    assert_eq!(env.git_in("other/vend", ["rev-parse", "HEAD"]).success().trim(), commit);
    assert_eq!(env.shell("other", "cat vend/lib.txt; git status --short").success(), "two\n M vend\n");
    // The sender went back, and goes on where it was saved.
    env.git(["submodule", "--quiet", "update"]).success();
    assert_eq!(env.shell("repo", "cat vend/lib.txt").success(), "one\n");
    env.handoff(["resume", "t", "--checkout"]).success();
    assert_eq!(env.git_in("repo/vend", ["rev-parse", "HEAD"]).success().trim(), commit);
}

#[test]
fn checkout_reports_a_missing_submodule_commit() {
    for prepare in ["true", "git submodule --quiet deinit vend"] {
        let (env, commit) = with_moved_submodule();
        env.shell("other", prepare).success();
        let adopted = env.handoff_in("other", ["--json"].iter().chain(&ADOPT)).success();
        let behind = serde_json::json!([{ "path": "vend", "commit": commit }]);
        assert_eq!(json(&adopted)["submodules"], behind, "{prepare}");
        let before = env.shell("other", "git status --short; cat vend/lib.txt 2>&1 || true").success();
        let again = env.handoff_in("other", ["resume", "u", "--checkout"]).exit(0);
        let command = format!(
            "git submodule update --init -- vend && git -C vend fetch origin {commit} && git -C vend checkout {commit}"
        );
        let warning = format!("warning: the submodule vend is not at the saved commit: {command}\n");
        assert!(again.stderr.ends_with(&warning), "{again}");
        assert_eq!(env.shell("other", "git status --short; cat vend/lib.txt 2>&1 || true").success(), before);
        env.shell("other", &command.replace("checkout", "checkout --quiet")).success();
        assert_eq!(env.handoff_in("other", ["resume", "u", "--checkout"]).exit(0).stderr, "");
        assert_eq!(env.shell("other", "cat vend/lib.txt").success(), "two\n");
    }
}

#[test]
fn a_submodule_with_local_changes_refuses_a_checkout() {
    for change in
        ["echo mine >vend/lib.txt", "git -C vend commit --quiet --allow-empty --message Mine", "echo n >vend/new"]
    {
        let (env, _) = with_moved_submodule();
        env.git_in("other/vend", ["fetch", "--quiet", "origin"]).success();
        env.shell("other", change).success();
        let before = env.git_in("other/vend", ["rev-parse", "HEAD"]).success();
        refused(&env, "local-changes");
        assert_eq!(env.git_in("other/vend", ["rev-parse", "HEAD"]).success(), before, "{change}");
    }
}

#[test]
fn checkpoint_rejects_trees_that_hosts_reject() {
    let nested = "nested is a nested git repository, which no checkpoint can hold";
    // The rest is the message of git.
    let refused = "git refuses the objects: ";
    for (what, message, name) in [
        ("git init --quiet nested && git -C nested commit --quiet --allow-empty --message x", nested, ""),
        ("git init --quiet nested", "the working tree cannot be saved: ", "nested"),
        ("ln -s file .gitmodules", "the working tree cannot be saved: ", ".gitmodules"),
        ("printf '[submodule \"a\"]\\n\\tpath = -x\\n\\turl = -x\\n' >.gitmodules", refused, "gitmodules"),
        (
            "git config handoff.maxProductSize 10 && printf 12345678901 >large && git add large",
            "large has more than 10 bytes, the most that is taken",
            "",
        ),
    ] {
        let env = repository();
        env.shell("repo", what).success();
        let before = (traces(&env, "repo"), env.git(["count-objects", "-v"]).success());
        let output = with_input(&env, "repo", &["checkpoint", "t", "--state", "-", "--worktree"], b"state");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{what}: {stderr}");
        let error = find_line(&stderr, "error: ").strip_prefix("error: ").unwrap();
        let (ours, gits) = error.split_at(error.find(" error: ").map_or(error.len(), |at| at + 1));
        assert_eq!((ours, gits.is_empty()), (message, name.is_empty()), "{what}: {stderr}");
        assert!(gits.contains(name), "{what}: {stderr}");
        assert_eq!(traces(&env, "repo"), before.0, "{what}");
    }
}

#[test]
fn checkpoint_reports_oversized_untracked_files() {
    let env = repository();
    env.write("repo/deep/big *.bin", "12345678901");
    env.write("repo/ten", "1234567890");
    // A file that HEAD has is saved at any size.
    env.shell("repo", "printf 123456789012 >committed && git add committed && git commit --quiet --message Large")
        .success();
    env.git(["config", "handoff.maxProductSize", "10"]).success();
    let state = with_input(&env, "repo", &["checkpoint", "t", "--state", "-", "--worktree"], b"state");
    let stderr = String::from_utf8_lossy(&state.stderr).into_owned();
    assert_eq!(state.status.code(), Some(0), "{stderr}");
    assert_eq!(stderr, "left out: deep/big *.bin, larger than 10 bytes, the most that is taken\n");
    let made: Value = serde_json::from_slice(&state.stdout).expect("it is JSON");
    let paths = serde_json::json!(["deep/big *.bin"]);
    assert_eq!((&made["left_out"], &made["too_large"]), (&paths, &paths));
    let answer: Value = serde_json::from_str(&env.handoff(["thread", "show", "t", "--json"]).success()).unwrap();
    let tree = answer["worktree"]["tree"].as_str().unwrap();
    let files = env.git(["ls-tree", "-r", "--name-only", tree]).success();
    assert!(files.contains("ten\n") && files.contains("committed\n") && !files.contains("big"), "{files}");
    assert!(answer["worktree"]["ignored"].to_string().contains("deep/big *.bin"), "{answer}");
    ends(&env, 0, &["thread", "verify", "t"]);
    // It stays where it is when the state comes back.
    ends(&env, 0, &["resume", "t", "--checkout"]);
    assert_eq!(env.shell("repo", "cat 'deep/big *.bin'").success(), "12345678901");
    // A change of a tracked file is work, and is not left out.
    env.write("repo/committed", "1234567890123");
    let output = env.handoff(["checkpoint", "t", "--state", "file", "--worktree"]).exit(1);
    assert_eq!(find_line(&output.stderr, "error: "), "error: committed has more than 10 bytes, the most that is taken");
}

#[test]
fn an_empty_tree_an_unborn_head_and_a_linked_worktree_can_be_saved() {
    let env = Environment::empty();
    env.shell("", "git init --quiet repo").success();
    save(&env, "t", b"state", &["--worktree"]);
    env.write("repo/new", "new");
    save(&env, "t", b"state", &["--worktree"]);
    ends(&env, 0, &["thread", "verify", "t"]);
    assert_eq!(
        env.git(["fsck", "--strict"]).exit(0).stderr.replace("notice: HEAD points to an unborn branch (main)\n", ""),
        ""
    );
    let second_env = repository();
    second_env.git(["worktree", "add", "--quiet", "--detach", "../linked"]).success();
    second_env.write("linked/file", "changed in the linked one");
    let saved = with_input(&second_env, "linked", &["checkpoint", "t", "--state", "-", "--worktree"], b"x");
    assert!(saved.status.success());
    assert_eq!(second_env.git(["show", "refs/handoff/threads/t:worktree/file"]).success(), "changed in the linked one");
    second_env.git_in("", ["clone", "--quiet", "--bare", "repo", "bare"]).success();
    assert_eq!(
        with_input(&second_env, "bare", &["checkpoint", "t", "--state", "-", "--worktree"], b"x").status.code(),
        Some(1)
    );
    assert_eq!(with_input(&second_env, "bare", &["checkpoint", "t", "--state", "-"], b"x").status.code(), Some(0));
}
