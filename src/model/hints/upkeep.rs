//! Hints about cleaning, archiving and repairs.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    /// A run left worktrees.
    clean(run) => "git handoff clean --force {run}";
    /// A deletion needs confirmation, but there is no terminal.
    delete_yes(run) => "git handoff delete --yes {run}";
    /// A plan needs a subagent, and none is registered.
    register_subagent() => "git config handoff.subagent.NAME.command 'COMMAND'";
    /// Something waits for the user's approval.
    awaiting() => "git handoff waiting";
    /// Transcripts use space.
    clean_transcripts() => "git handoff clean --transcripts";
    /// The disk is nearly full.
    clean_all() => "git handoff clean --transcripts --salvage";
    /// A folder belongs to no run.
    remove_folder(path) => "rm -rf {path}   # after looking at it";
    /// A file may be a leftover.
    remove_file(path) => "rm -r {path}   # if no git is at work here";
    /// A ref belongs to no run.
    remove_ref(name) => "git update-ref -d {name}   # after looking at it: git log {name}";
    /// A replacement ref hides an object that is evidence.
    remove_replacement(id) => "git replace -d {id}";
    /// Replacement refs exist for other objects.
    list_replacements() => "git replace --list   # to remove one: git replace -d ID";
    /// Objects have names of a second hash.
    unset_compatible_format() => "git config --unset extensions.compatObjectFormat   # unless you need the other names";
    /// A repository belongs to another user.
    safe_directory(path) => "git config --global --add safe.directory {path}   # if you trust its owner with all that you may do";
    /// A lock file of git remains.
    remove_lock(path) => "rm {path}   # if no git command runs here, nor an editor that one opened; then the same command again";
    /// Files here belong to another user.
    take_over_files(path) => "sudo chown -R \"$(id -u)\" {path}   # a command of another user left files there";
    /// Root left files in the repository of another user.
    give_back_files(uid, path) => "chown -R {uid} {path}   # a command that ran as root left files there";
    /// The signing key is readable by others.
    restrict(path) => "chmod 600 {path}";
    /// Archived runs may still have refs on a remote.
    push_archive() => "git handoff push --all   # the archive goes, and their refs on the remote with it";
    /// An archive of ours was altered.
    look_into_archive(reference) => "git log --first-parent {reference}   # its runs, one by one: git handoff verify --all";
    /// A run has a ref of its own.
    archived_runs() => "git handoff runs --archived";
    /// Fetched runs are not listed.
    fetched_runs() => "git handoff runs --all";
}
