//! Hints for a run's report: unknown keys and missing anchors.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    explain(run) => "git handoff coordinate --explain {run}";
    know_key() => "if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE";
    run_under_another_id() => "git handoff run PLAN --id ID   # if one of the two is yours and has a plan file: gives it an id of its own";
    verify_signed_by(run, key) => "git handoff verify {run} --signer {key}   # if this run is the one you mean";
    decide_or_accept(run) => "git handoff verify {run} --signer KEY   # to take it all the same: --accept-untrusted";
    push_run_to_anchor(anchor, run) => "git handoff anchor push {anchor} {run}";
    ask_to_anchor(anchor, run) => "ask its sealer for: git handoff anchor push {anchor} {run}";
    fetch_logs(remote) => "git handoff fetch {remote}   # fetches the logs; if none of them names the run, ask its sealer for: git handoff push";
    log_run(run) => "git handoff doctor --fix   # logs {run} again if it is sound and your key's";
}
