//! Hints for a run's report: unknown keys and missing anchors.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    /// A rule of a sealed run stopped.
    explain(run) => "git handoff coordinate --explain {run}";
    /// An unknown key made a signature.
    know_key() => "if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE";
    /// Two runs have the same id.
    run_under_another_id() => "git handoff run PLAN --id ID   # if one of the two is yours: gives it an id of its own";
    /// Two runs have the same id, and this one is meant.
    verify_signed_by(run, key) => "git handoff verify {run} --signer {key}   # if this run is the one you mean";
    /// Two runs have the same id, and one must be chosen.
    decide_or_accept(run) => "git handoff verify {run} --signer KEY   # to take it all the same: --accept-untrusted";
    /// An anchor lacks a run of ours.
    push_run_to_anchor(anchor, run) => "git handoff anchor push {anchor} {run}";
    /// An anchor lacks a run of another key.
    ask_to_anchor(anchor, run) => "ask its sealer for: git handoff anchor push {anchor} {run}";
    /// No fetched log of the remote names a run.
    fetch_logs(remote) => "git handoff fetch {remote}   # fetches the logs; if none of them names the run, ask its sealer for: git handoff push";
    /// No local log names a run of ours.
    log_run(run) => "git handoff doctor --fix   # logs {run} again if it is sound and your key's";
}
