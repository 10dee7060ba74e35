//! Confines files, signals and abstract sockets with Landlock.
//!
//! See `Documentation/userspace-api/landlock.rst` of Linux.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::Word;
use super::access_map::Access;
use super::default_paths::DEVICES;
use crate::model::confinement::Network;

/// The newest version whose rights we know.
const KNOWN: ABI = ABI::V9;

/// Creates the rules that confine a process and its children to the granted paths.
///
/// Below a layer that hides other paths, existing names may be listed. Omits rights that only newer
/// kernels know.
pub(crate) fn rules(
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
        // A path that disappeared needs no rule.
        let Ok(opened) = open(path) else { continue };
        let mut rights = match access {
            Access::Hidden => continue,
            Access::Read => AccessFs::from_read(KNOWN),
            // Never permit creating devices.
            Access::Write => AccessFs::from_all(KNOWN) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
        };
        if !path.starts_with("/dev") {
            rights &= !AccessFs::IoctlDev;
        }
        // The library omits rights that apply only to folders.
        ruleset = ruleset.add_rule(PathBeneath::new(opened, rights))?;
    }
    if let Some(top) = listed.then(|| open(Path::new("/")).ok()).flatten() {
        ruleset = ruleset.add_rule(PathBeneath::new(top, AccessFs::ReadDir))?;
    }
    Ok(ruleset)
}

/// Applies the rules to this process and returns the Landlock version, or `None` if the kernel has
/// no Landlock. Allocates nothing unless it fails.
pub(crate) fn apply(rules: RulesetCreated) -> Result<Option<u32>, landlock::RulesetError> {
    let status = rules.restrict_self()?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => None,
        (_, LandlockStatus::Available { effective_abi, .. }) => Some(effective_abi as u32),
        _ => None,
    })
}

/// Opens the path of a rule. Paths are resolved, so a link in one was added later to redirect the
/// rule.
fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}
