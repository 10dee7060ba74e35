//! Repositories that a worker makes below its worktree: they are left out of the patch, and the
//! capture says so.

use git_handoff::worktree::capture::capture;
use git_handoff::worktree::salvage::salvage;

use crate::worker::harness::{FORMATS, Repo};

/// A commit in the repository of the current folder.
const COMMIT: &str = "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x";

/// Returns what a script's change is, and the repositories that it does not hold.
fn left_out(repo: &Repo, script: &str) -> (String, Vec<String>) {
    let captured = repo.captured(script).unwrap();
    let store = git_handoff::git::store::Store::discover(&repo.path).unwrap();
    let patch = captured.patch.map(|patch| store.read_blob(patch.oid).unwrap());
    (String::from_utf8_lossy(&patch.unwrap_or_default()).into_owned(), captured.left_out)
}

#[test]
fn nested_repositories_are_excluded_and_reported() {
    for format in FORMATS {
        let repo = Repo::new(format);
        let plain = repo.patch("echo x >>a.txt; echo y >new").unwrap();
        for (script, expected) in [
            ("git init -q vendor/lib; echo z >vendor/lib/z", &["\"vendor/lib\""][..]),
            ("git init -q 'vendor/ä \"b'; echo z >'vendor/ä \"b/z'", &["\"vendor/ä \\\"b\""]),
            ("git clone -q . copy", &["\"copy\""]),
            ("git worktree add -q .wt HEAD; rm .wt/a.txt", &["\".wt\""]),
            (
                "git worktree add -q .claude/worktrees/x -b x; git init -q .b/c",
                &["\".b/c\"", "\".claude/worktrees/x\""],
            ),
            ("git init -q --separate-git-dir=.git/elsewhere lib; echo z >lib/z", &["\"lib\""]),
            ("git init -q one; git init -q one/two; echo z >one/two/z", &["\"one\""]),
            // Ignored files are not part of the work.
            ("git init -q target/lib; git clone -q . target/copy", &[]),
            // Nothing of it is run.
            ("git init -q lib; git -C lib config core.fsmonitor 'touch $CANARY'; echo z >lib/z", &["\"lib\""]),
        ] {
            let (patch, left_out) = left_out(&repo, &format!("{script}; echo x >>a.txt; echo y >new"));
            assert_eq!((patch.as_bytes(), &left_out[..]), (&plain[..], &to_strings(expected)[..]), "{script}");
        }
        assert_eq!(left_out(&repo, "git init -q lib"), (String::new(), to_strings(&["\"lib\""])));
    }
}

#[test]
fn the_files_of_a_tracked_folder_count_although_the_worker_made_a_repository_of_it() {
    for format in FORMATS {
        let repo = Repo::new(format);
        let change = "echo x >>dir/b.txt; rm dir/deep/c.bin; echo y >dir/new; mkdir dir/more; echo z >dir/more/z";
        let plain = repo.patch(change).unwrap();
        for script in [
            format!(
                "cd dir; git init -q; git config core.fsmonitor 'touch $CANARY; false'; git add -A; {COMMIT}; cd .."
            ),
            format!("git init -q dir; git init -q dir/deep; {COMMIT}"),
        ] {
            let (patch, left_out) = left_out(&repo, &format!("{script}; {change}"));
            assert_eq!(patch, String::from_utf8_lossy(&plain), "{script}");
            assert!(left_out.contains(&"\"dir\"".to_owned()), "{script}: {left_out:?}");
        }
        // So does a change to one file alone, and one new file alone.
        let one = repo.patch("echo y >dir/new").unwrap();
        assert_eq!(left_out(&repo, "git init -q dir; echo y >dir/new").0.as_bytes(), one);
    }
}

#[test]
fn a_submodule_that_is_added_leaves_its_mark_in_the_file_of_submodules() {
    let repo = Repo::new("sha1");
    let script = format!(
        "git init -q $HOME/sub; (cd $HOME/sub; {COMMIT}); git -c protocol.file.allow=always submodule --quiet add $HOME/sub libs/sub
         git -C libs/sub log --oneline | grep -q x"
    );
    let (patch, left_out) = left_out(&repo, &script);
    assert_eq!(left_out, ["\"libs/sub\""]);
    assert!(patch.contains("+++ b/.gitmodules") && patch.contains("+\tpath = libs/sub"), "{patch}");
    assert!(!patch.contains("160000"), "{patch}");
    repo.applied(patch.as_bytes(), &[]);
}

#[test]
fn salvage_reports_nested_repositories() {
    let repo = Repo::new("sha1");
    let host = repo.host();
    let workspace = repo.workspace(&host);
    let script =
        format!("git init -q lib; echo z >lib/z; (cd lib; {COMMIT}); git init -q dir; echo y >dir/y; echo x >x");
    repo.script(&workspace, &script);
    let saved = salvage(&workspace, &host).unwrap().unwrap();
    assert_eq!(saved.without, ["\"dir\", a git repository", "\"lib\", a git repository"]);
    let listed = repo.git(&["ls-tree", "-r", "--name-only", &saved.tree.to_string()]);
    assert!(listed.contains("dir/y") && listed.lines().any(|line| line == "x") && !listed.contains("lib"), "{listed}");
    workspace.remove().unwrap();
}

#[test]
fn outputs_hold_no_repository() {
    let repo = Repo::new("sha1");
    insta::assert_snapshot!(repo.refused("git init -q outputs/lib"), @r#"the output "outputs/lib/.git" cannot be taken: a path must not have the segment ".git": none may be empty, `.`, `..` or a spelling of `.git`"#);
    // Consumed bytes are not looked at.
    let host = repo.host();
    let workspace = repo.workspace(&host);
    repo.script(&workspace, "git init -q inputs/lib");
    assert!(capture(&workspace, &host).unwrap().left_out.is_empty());
    workspace.remove().unwrap();
}

fn to_strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
