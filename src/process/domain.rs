//! A Landlock domain around the supervisor and its command, to signal all processes at once.
//!
//! A list of processes cannot end one that forks faster than the list is read. Only the kernel can
//! signal all of them while none can fork; below bubblewrap it does so with their namespace.
//! Elsewhere, Landlock (from version 6) limits this process's signals to its own domain, and
//! "everybody" then means just that domain.

use landlock::{
    AccessFs, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

/// The processes that this process may signal: itself, and those started since.
pub(crate) struct Domain {
    /// A process outside.
    outside: Pid,
}

impl Domain {
    /// Moves this process, which has one thread, and its future children into a domain. Returns
    /// `None` if the kernel has no domains.
    ///
    /// Checked: a process outside that could be signalled before no longer can.
    pub(crate) fn enter() -> Option<Self> {
        let outside = rustix::process::getppid()?;
        rustix::process::test_kill_process(outside).ok()?;
        let status = restrict().ok()?;
        let is_enforced = status.ruleset == RulesetStatus::FullyEnforced
            && matches!(status.landlock, LandlockStatus::Available { .. })
            && rustix::process::test_kill_process(outside) == Err(Errno::PERM);
        is_enforced.then_some(Self { outside })
    }

    /// Kills all other processes in it. Returns false without doing anything if the domain cannot
    /// be confirmed.
    pub(crate) fn kill(&self) -> bool {
        let holds = rustix::process::test_kill_process(self.outside).is_err();
        if holds {
            // Signalling the group of process 1 means every process that we may signal; there may
            // be none.
            let _ = rustix::process::kill_process_group(Pid::INIT, Signal::KILL);
        }
        holds
    }
}

/// Limits the signals of this process and its children to themselves.
fn restrict() -> Result<RestrictionStatus, Box<dyn std::error::Error>> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal)?;
    // A layer without this right would block moves between folders below another file layer.
    let ruleset = ruleset.handle_access(AccessFs::Refer)?.create()?;
    Ok(ruleset.add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::Refer))?.restrict_self()?)
}
