//! Hints about what a report on a run lacks: known keys, and places that hold it.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    /// A rule of a sealed run stopped.
    explain(run) => "git handoff coordinate --explain {run}";
    /// A signature is by a key of which nothing is known.
    know_key() => "if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE";
    /// Two runs have one id.
    run_under_another_id() => "git handoff run PLAN --id ID   # if one of the two is yours: gives it an id of its own";
    /// Two runs have one id, and this one is meant.
    verify_signed_by(run, key) => "git handoff verify {run} --signer {key}   # if this run is the one you mean";
    /// Two runs have one id, and one of them is wanted.
    decide_or_accept(run) => "git handoff verify {run} --signer KEY   # to take it all the same: --accept-untrusted";
    /// An anchor does not hold a run of ours yet.
    push_run_to_anchor(anchor, run) => "git handoff anchor push {anchor} {run}";
    /// An anchor does not hold a run of another key.
    ask_to_anchor(anchor, run) => "ask whoever sealed the run for: git handoff anchor push {anchor} {run}";
    /// No log of the remote was fetched that holds a run.
    fetch_logs(remote) => "git handoff fetch {remote}   # brings the logs; if none there holds the run: ask whoever sealed it for git handoff push";
    /// No log here holds a run of ours.
    log_run(run) => "git handoff doctor --fix   # logs {run} again if it is sound and your key's";
}
