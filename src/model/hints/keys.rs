//! Hints about the roles of keys.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    /// A key has not the role that something takes.
    admit(run, key, role) => "whoever owns the run gives it to you: git handoff admit {run} {key} --as {role}";
    /// A key has no role that something takes.
    admit_any(run, key) => "whoever owns the run can give you a role: git handoff admit {run} {key} --as ROLE";
    /// A run is signed by a key that is not known.
    know_signer() => "if you trust that key, add its `git handoff key` line to the file of gpg.ssh.allowedSignersFile";
    /// A key cannot seal a run.
    admit_to_seal(run, key) => "an owner that entry 0 names gives it to you: git handoff admit {run} {key} --as seal";
    /// A key that became an owner later cannot give another one the role to seal.
    owners(run) => "git handoff show {run}   # one of its writers with the role own can: git handoff admit {run} KEY --as seal";
}
