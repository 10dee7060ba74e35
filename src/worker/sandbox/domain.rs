//! A bound around the supervisor and all that its command starts, by which all of it can be ended at once.
//!
//! Whoever makes new processes faster than somebody can look for them and kill each is ended by no list of processes. The kernel alone
//! sends a signal to all of them while none can be made; below bubblewrap it does so with their namespace. Elsewhere, Landlock (from
//! version 6 of its interface on) keeps this process from signalling anybody who is not its own, and "everybody" then is just those.

use landlock::{
    AccessFs, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

/// Whom this process may signal: itself, and what it started since.
pub(in crate::worker) struct Domain {
    /// Somebody else.
    outside: Pid,
}

impl Domain {
    /// Puts this process, which has one thread, and whatever it starts from now on into a domain; none where the kernel knows of none.
    ///
    /// It was seen to hold: somebody outside, who could be signalled before, cannot be any more.
    pub(in crate::worker) fn enter() -> Option<Self> {
        let outside = rustix::process::getppid()?;
        rustix::process::test_kill_process(outside).ok()?;
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal).ok()?;
        // Of files, it is not to say anything. But below a domain that says nothing of it, none that does can allow that a file
        // comes into another folder, and programs that do so by renaming fail.
        let ruleset = ruleset.handle_access(AccessFs::Refer).ok()?.create().ok()?;
        let all = PathBeneath::new(PathFd::new("/").ok()?, AccessFs::Refer);
        let status = ruleset.add_rule(all).ok()?.restrict_self().ok()?;
        let is_enforced = status.ruleset == RulesetStatus::FullyEnforced
            && matches!(status.landlock, LandlockStatus::Available { .. })
            && rustix::process::test_kill_process(outside) == Err(Errno::PERM);
        is_enforced.then_some(Self { outside })
    }

    /// Kills all in it but this process; returns false, and does nothing, where it cannot be seen to hold.
    pub(in crate::worker) fn kill(&self) -> bool {
        let holds = rustix::process::test_kill_process(self.outside).is_err();
        if holds {
            // The group of the first process of all stands for everybody whom we may signal; nobody may be left.
            let _ = rustix::process::kill_process_group(Pid::INIT, Signal::KILL);
        }
        holds
    }
}
