//! Hints about cleaning, archiving and repairs.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    configure() => "git handoff init";
    configure_yes() => "git handoff init --yes --agent NAME --check COMMAND";
    share_with() => "git handoff init --share=REMOTE";
    record_agent(agent) => "git handoff record --agent {agent} TASK   # or write a plan: git handoff plan new";
    write_plan() => "git handoff plan new";
    clean(run) => "git handoff clean --force {run}";
    recheck_yes(what) => "git handoff verify --recheck {what} --yes   # runs these commands";
    delete_yes(run) => "git handoff delete --yes {run}";
    register_subagent() => "git config handoff.subagent.NAME.command 'COMMAND'";
    awaiting() => "git handoff waiting";
    clean_remote() => "git handoff clean --remote --force";
    clean_transcripts() => "git handoff clean --transcripts";
    clean_all() => "git handoff clean --transcripts --salvage";
    remove_folder(path) => "rm -rf {path}   # after looking at it";
    remove_file(path) => "rm -r {path}   # if no git is at work here";
    remove_ref(name) => "git update-ref -d {name}   # after looking at it: git log {name}";
    remove_replacement(id) => "git replace -d {id}";
    list_replacements() => "git replace --list   # to remove one: git replace -d ID";
    unset_compatible_format() => "git config --unset extensions.compatObjectFormat   # unless you need the other names";
    name_git_dir(path) => "cd ..   # or, if you made this repository yourself: export GIT_DIR={path}";
    safe_directory(path) => "git config --global --add safe.directory {path}   # if you trust its owner with all that you may do";
    remove_lock(path) => "rm {path}   # if no git command runs here, nor an editor that one opened; then the same command again";
    take_over_files(path) => "sudo chown -R \"$(id -u)\" {path}   # a command of another user left files there";
    give_back_files(uid, path) => "chown -R {uid} {path}   # a command that ran as root left files there";
    list_files(pathspec) => "git ls-files -- {pathspec}   # lists what it selects: case counts, and a folder needs no slash";
    no_locks() => "git clone . FOLDER   # on a disk of this machine; NFS has locks with nfsvers=4, or for one machine alone with local_lock=flock";
    restrict(path) => "chmod 600 {path}";
    push_archive() => "git handoff push --all   # the archive goes, and their refs on the remote with it";
    look_into_archive(reference) => "git log --first-parent {reference}   # its runs, one by one: git handoff verify --all";
    archived_runs() => "git handoff runs --archived";
    fetched_runs() => "git handoff runs --all";
}
