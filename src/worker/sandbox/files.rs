//! The inner layer for files, signals and abstract sockets: Landlock.
//!
//! What the kernel is asked for is what it is documented for, see `Documentation/userspace-api/landlock.rst` of Linux.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::Word;
use super::map::Access;
use super::places::DEVICES;
use crate::model::confinement::Network;

/// The newest version of the interface whose rights we know to give.
const KNOWN: ABI = ABI::V9;

/// Makes the rules by which a process is confined, with all that it starts, to what is given.
///
/// Below another layer that hides what is not given, the names of what is there may be listed. Rights that only newer kernels know
/// are left out.
pub(super) fn rules(
    given: &[(Word, Access)],
    network: Network,
    listed: bool,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?;
    if network == Network::None {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN))?;
    }
    let mut ruleset = ruleset.create()?;
    let given = given.iter().map(|(path, access)| (path.as_ref(), *access));
    let devices = DEVICES.iter().map(|device| (Path::new(device), Access::Write));
    let proc = std::iter::once((Path::new("/proc"), Access::Read));
    for (path, access) in given.chain(devices).chain(proc) {
        // What is gone by now needs no rule.
        let Ok(opened) = open(path) else { continue };
        let mut rights = match access {
            Access::Hidden => continue,
            Access::Read => AccessFs::from_read(KNOWN),
            // Nobody makes devices.
            Access::Write => AccessFs::from_all(KNOWN) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
        };
        if !path.starts_with("/dev") {
            rights &= !AccessFs::IoctlDev;
        }
        // What only folders can be given is left out for files by the library.
        ruleset = ruleset.add_rule(PathBeneath::new(opened, rights))?;
    }
    if let Some(top) = listed.then(|| open(Path::new("/")).ok()).flatten() {
        ruleset = ruleset.add_rule(PathBeneath::new(top, AccessFs::ReadDir))?;
    }
    Ok(ruleset)
}

/// Confines this process by rules; returns the version of the interface that does so. Where the kernel has no Landlock, nothing
/// happens and there is no version. Nothing is allocated unless it fails.
pub(super) fn apply(rules: RulesetCreated) -> Result<Option<u32>, landlock::RulesetError> {
    let status = rules.restrict_self()?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => None,
        (_, LandlockStatus::Available { effective_abi, .. }) => Some(effective_abi as u32),
        _ => None,
    })
}

/// Opens what a rule is about. The paths are resolved: a link in one was put there since, to lead the rule somewhere else.
fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}
