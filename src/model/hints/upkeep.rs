//! Hints about what may go, and what is put away.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    /// A run left worktrees on the disk.
    clean(run) => "git handoff clean --force {run}";
    /// A run is to be deleted where nobody can be asked.
    delete_yes(run) => "git handoff delete --yes {run}";
    /// A plan wants a subagent, and there is none.
    register_subagent() => "git config handoff.subagent.NAME.command 'COMMAND'";
    /// Something awaits the approval of the user's key.
    awaiting() => "git handoff waiting";
    /// Transcripts take space.
    clean_transcripts() => "git handoff clean --transcripts";
    /// The disk is nearly full.
    clean_all() => "git handoff clean --transcripts --salvage";
    /// A folder belongs to no run.
    remove_folder(path) => "rm -rf {path}   # after looking at it";
    /// A file may belong to nobody.
    remove_file(path) => "rm -r {path}   # if no git is at work here";
    /// A ref is no run's.
    remove_ref(name) => "git update-ref -d {name}   # after looking at it: git log {name}";
    /// Something stands in for an object that is evidence.
    remove_replacement(id) => "git replace -d {id}";
    /// Refs stand in for objects that are no evidence.
    list_replacements() => "git replace --list   # to remove one: git replace -d ID";
    /// Objects also have names of another hash.
    unset_compatible_format() => "git config --unset extensions.compatObjectFormat   # unless you need the other names";
    /// A repository belongs to another user.
    safe_directory(path) => "git config --global --add safe.directory {path}   # if you trust its owner with all that you may do";
    /// A lock file of git's is in the way.
    remove_lock(path) => "rm {path}   # if no git command runs here, nor an editor that one opened; then the same command again";
    /// Files here belong to another user.
    take_over_files(path) => "sudo chown -R \"$(id -u)\" {path}   # a command of another user left files there";
    /// Root left files in the repository of another user.
    give_back_files(uid, path) => "chown -R {uid} {path}   # a command that ran as root left files there";
    /// Others can read the signing key.
    restrict(path) => "chmod 600 {path}";
    /// Runs were archived, and a remote may have refs of theirs.
    push_archive() => "git handoff push --all   # the archive goes, and their refs on the remote with it";
    /// An archive of ours is not what it was.
    look_into_archive(reference) => "git log --first-parent {reference}   # its runs, one by one: git handoff verify --all";
    /// A run has a ref of its own.
    archived_runs() => "git handoff runs --archived";
    /// Runs that were fetched are not listed.
    fetched_runs() => "git handoff runs --all";
}
