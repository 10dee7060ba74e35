//! Hints about the roles of keys.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    admit(run, key, role) => "an owner of the run can give you the role: git handoff admit {run} {key} --as {role}";
    admit_or_continue(run, key, role) =>
        "an owner of the run can give you the role (without an owner: git handoff adopt-run {run} --id ID): git handoff admit {run} {key} --as {role}";
    admit_any(run, key) => "an owner of the run can give you a role (without an owner: git handoff adopt-run {run} --id ID): git handoff admit {run} {key} --as ROLE";
    know_signer() => "if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE";
    admit_to_seal(run, key) => "an owner that entry 0 names can give you the role: git handoff admit {run} {key} --as seal";
    drivers(run) => "git handoff status {run} --drivers";
    owners(run) => "git handoff show {run}   # one of its writers with the role own can: git handoff admit {run} KEY --as seal";
}
