//! Confines a worker in layers, which a manifest records.
//!
//! | layer | blocks |
//! |---|---|
//! | bubblewrap (`mounts`) | other files, processes, sockets, shared memory, the network |
//! | Landlock (`files`) | other files and processes |
//! | seccomp (`calls`) | system calls that lead out of the other layers |
//!
//! The command drops root's capabilities and is confined by the inner layers before it starts
//! (`process::confine`): by itself, in the supervisor's child, or, below bubblewrap, by a process
//! of this program that starts it. `policy` decides what is reachable, as an `access_map`.

mod access_map;
mod caches;
#[cfg(target_os = "linux")]
pub(crate) mod calls;
mod control_groups;
mod default_paths;
#[cfg(target_os = "linux")]
pub(crate) mod files;
pub(crate) mod folder;
mod home;
mod java;
mod line_paths;
pub(crate) mod mount_identity;
mod mounts;
mod outside;
pub(crate) mod overlay;
mod policy;
mod private_copies;
pub mod probe;
mod programs;
mod protocol;
pub(crate) mod removal;
mod resolve;
mod scratch;
mod secrets;
mod servers;
mod settings;
mod settings_above;
mod shared_memory;
mod tools;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub use caches::{HiddenInCache, MOST_COPIED, Size};
pub use line_paths::named_in;
pub use policy::{Missing, More, Surroundings, folders};
pub use private_copies::PrivateCopy;
pub use scratch::Scratch;
pub use tools::TOOLS;

pub(crate) use mount_identity::open_folder;
pub(crate) use mounts::PROGRAM;
pub(crate) use protocol::{ExecSetup, Inner, Instructions, Lease, Outer, Word};

use access_map::{Access, AccessMap};
use mounts::Mounts;
use policy::ExecutorPolicy;
use resolve::Led;
use scratch::Over;

use crate::model::confinement::{Asked, BWRAP, Home, LANDLOCK, NONE, Network, SECCOMP, Sockets};

/// The first version of Landlock that blocks abstract sockets of other processes (Linux 6.12).
const NAMES: u32 = 6;

/// The first version of Landlock that blocks sockets in the file system.
const SOCKETS: u32 = 9;

/// The available layers, with versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// The version of Landlock.
    pub landlock: Option<u32>,
    /// True if system calls are filtered.
    pub seccomp: bool,
    /// The version of bubblewrap.
    pub bwrap: Option<String>,
}

impl Layers {
    /// Returns true if a worker can connect to any socket in the file system that its user may
    /// open.
    fn reach_sockets(&self) -> bool {
        self.bwrap.is_none() && self.landlock.is_none_or(|version| version < SOCKETS)
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let landlock = self.landlock.map(|version| format!("{LANDLOCK}:{version}"));
        let seccomp = self.seccomp.then(|| SECCOMP.to_owned());
        let bwrap = self.bwrap.as_ref().map(|version| format!("{BWRAP}:{version}"));
        let layers: Vec<String> = [landlock, seccomp, bwrap].into_iter().flatten().collect();
        f.write_str(if layers.is_empty() { NONE.to_owned() } else { layers.join(" ") }.as_str())
    }
}

/// The layers that this machine supports, and the paths that workers reach here.
pub struct Sandbox {
    around: Surroundings,
    program: Option<PathBuf>,
    /// The path of bubblewrap, if it works.
    bwrap: Option<PathBuf>,
    /// True if it can limit shared memory, or without it, if the supervisor can mount some.
    mounts_shared: bool,
    layers: Layers,
    /// The reasons for missing layers.
    missing: Vec<String>,
    known: Mutex<BTreeMap<More, Arc<ExecutorPolicy>>>,
}

/// The confinement of one executor's workers.
#[derive(Clone, Debug)]
pub struct Confinement {
    reach: Arc<ExecutorPolicy>,
    layers: Layers,
    bwrap: Option<PathBuf>,
    mounts_shared: bool,
    program: PathBuf,
    network: Network,
    home: Home,
}

/// The files of one attempt that its worker can reach.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// The worktree.
    pub tree: &'a Path,
    /// Additional writable paths.
    pub writable: &'a [&'a Path],
    /// Additional readable paths.
    pub readable: &'a [&'a Path],
    /// The targets of links in its worktree.
    pub linked: &'a [&'a Path],
    /// The attempt's folders that are mounted over others.
    pub scratch: Option<Scratch<'a>>,
    /// True if it may only read the paths that are writable for its executor.
    pub frozen: bool,
}

/// The paths that one attempt can reach.
struct AttemptPolicy {
    /// The access to each path; the source of the mounts.
    map: AccessMap,
    /// The same as Landlock rules, which can only grant.
    given: Vec<(Word, Access)>,
    /// Why the attempt must not start.
    refused: Option<String>,
}

impl Sandbox {
    /// Returns a sandbox without layers, for unconfined workers.
    pub fn none() -> Self {
        Self {
            around: Surroundings::default(),
            program: None,
            bwrap: None,
            mounts_shared: false,
            layers: Layers::default(),
            missing: Vec::new(),
            known: Mutex::default(),
        }
    }

    /// Returns the confinement for an executor, or `None`. Fails if it cannot be enforced here.
    pub fn confine(&self, more: &More, network: Network) -> Result<Option<Confinement>, Refused> {
        if more.mode == Asked::None {
            return if network == Network::Any { Ok(None) } else { Err(Refused::Unconfined(network)) };
        }
        if more.mode.insists()
            && let Some(why) = self.missing()
        {
            return Err(Refused::Missing(more.mode, why));
        }
        let shut = match network {
            Network::Any => true,
            Network::Loopback => self.layers.bwrap.is_some(),
            Network::None => self.layers.bwrap.is_some() || self.layers.seccomp,
        };
        if !shut {
            return Err(Refused::Network(network, self.missing.join("; ")));
        }
        let Some(program) = self.program.clone().filter(|_| self.layers != Layers::default()) else { return Ok(None) };
        let reach = self.reach(more)?;
        let (layers, bwrap, mounts_shared) = (self.layers.clone(), self.bwrap.clone(), self.mounts_shared);
        Ok(Some(Confinement { reach, layers, bwrap, mounts_shared, program, network, home: more.home }))
    }

    /// Returns the missing layers with reasons, or `None` if all are available.
    pub fn missing(&self) -> Option<String> {
        (!self.missing.is_empty()).then(|| self.missing.join("; "))
    }

    /// Returns the available layers.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    fn reach(&self, more: &More) -> Result<Arc<ExecutorPolicy>, Refused> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reach) = known.get(more) {
            return Ok(Arc::clone(reach));
        }
        let mut reach = ExecutorPolicy::new(&self.around, more)?;
        reach.caches.decide(self);
        let reach = Arc::new(reach);
        if self.bwrap.is_some()
            && let Some(folder) = mounts::laid_over(&reach.map)
        {
            return Err(Refused::LaidOver { setting: more.giver(&folder), folder });
        }
        known.insert(more.clone(), Arc::clone(&reach));
        Ok(reach)
    }
}

impl Confinement {
    /// Returns the layers in the form of a manifest.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Returns the worker's network access.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Returns `Reachable` if no layer blocks the user's sockets in the file system.
    pub fn sockets(&self) -> Option<Sockets> {
        self.layers.reach_sockets().then_some(Sockets::Reachable)
    }

    /// Returns true if the worker has a private home directory.
    pub fn has_own_home(&self) -> bool {
        self.home == Home::Private
    }

    /// Returns true if system calls are blocked that change a file without changing its times.
    pub fn keeps_times(&self) -> bool {
        self.layers.seccomp
    }

    /// Returns true if the worker shares no writable path and no abstract socket with any other
    /// attempt, and every change of a file shows in its times: then its worktree can be used again.
    pub fn keeps_apart(&self) -> bool {
        let names = self.network != Network::Any || self.layers.landlock.is_some_and(|version| version >= NAMES);
        self.bwrap.is_some() && self.keeps_times() && names && self.has_own_home() && !self.reach.shares
    }

    /// Returns true if the worker has a private `/tmp`.
    pub fn has_own_tmp(&self) -> bool {
        self.bwrap.is_some()
    }

    /// Returns the message for the processes between driver and command; `memory` is the attempt's
    /// limit in bytes.
    pub(crate) fn instructions(&self, own: &Own<'_>, memory: Option<u64>) -> Outer {
        let AttemptPolicy { mut map, mut given, refused } = self.policy(own);
        let scratch = own.scratch.as_ref().filter(|_| self.bwrap.is_some());
        let over = scratch.map_or_else(|| Ok(Over::default()), |scratch| self.lay_over(scratch, &mut map, &mut given));
        let (over, unlaid) = over.map_or_else(|why| (Over::default(), Some(why)), |over| (over, None));
        let refused = refused.or(unlaid);
        let shared = self.shared_memory(&map, memory);
        let Layers { landlock, seccomp, .. } = self.layers;
        let mut identities = Vec::new();
        let words = self.bwrap.as_ref().map(|bwrap| {
            let homes: Vec<PathBuf> = self.reach.home.iter().cloned().collect();
            let mounts = Mounts {
                map: &map,
                over: &over,
                homes: &homes,
                program: Some(&self.program),
                network: self.network,
                shared: memory.filter(|_| self.mounts_shared),
                landlock: landlock.is_some(),
            };
            let (arguments, mounted) = mounts::arguments(&mounts);
            identities = mounted;
            std::iter::once(Word::from(bwrap)).chain(arguments).collect()
        });
        let Over { mounted, overlays, .. } = over;
        Outer {
            words,
            overlays,
            shared,
            inner: Inner { landlock, given, identities, mounted, seccomp, network: self.network },
            refused,
        }
    }

    /// Returns the policy for one attempt, from which mounts and Landlock rules are made.
    fn policy(&self, own: &Own<'_>) -> AttemptPolicy {
        let mut map = self.reach.map.clone();
        // bubblewrap's cover is lost if an outside process replaces the hidden file; Landlock
        // grants neither file.
        let mut given = self.reach.given.clone();
        if own.frozen {
            map.freeze();
            for (_, access) in given
                .iter_mut()
                .filter(|(path, _)| AsRef::<Path>::as_ref(path) != Path::new(default_paths::SHARED_MEMORY))
            {
                *access = (*access).min(Access::Read);
            }
        }
        let readable = own.readable.iter().map(|path| (path, Access::Read));
        let writable = own.writable.iter().chain([&own.tree]).map(|path| (path, Access::Write));
        for (path, access) in readable.chain(writable) {
            given.extend(map.set(path, access).map(|real| (real.into(), access)));
        }
        for path in self.hidden(&map).readable(own.tree) {
            given.extend(map.set(&path, Access::Read).map(|real| (real.into(), Access::Read)));
        }
        let refused = self.link(own.linked, &mut map, &mut given).or_else(|| mounts::describe_changed_path(&map));
        AttemptPolicy { map, given, refused }
    }

    /// Grants the targets of links in the worktree as far as permitted. Returns the reason if one
    /// is not.
    fn link(&self, linked: &[&Path], map: &mut AccessMap, given: &mut Vec<(Word, Access)>) -> Option<String> {
        for path in linked {
            let Some(Led { real, is_there: true, planted }) = map.resolve(path) else { continue };
            let refusal = |why: String| Some(format!("{}, which is linked into worktrees, {why}", path.display()));
            if let Some(link) = planted {
                return refusal(format!("leads through {}, a link that a worker may have put there", link.display()));
            }
            if map
                .hidden_by(&real)
                .is_some_and(|place| !self.reach.homes_and_trees.iter().any(|closed| closed == place))
            {
                return refusal(format!("leads to {}, which no worker reaches", real.display()));
            }
            if map.access(&real) == Access::Hidden
                && let Err(why) = self.give(&real, map, given)
            {
                return refusal(format!("leads to {}, {why}", real.display()));
            }
        }
        None
    }

    /// Grants a path that is not granted yet, as `readable` would, without its secrets. Returns the
    /// reason if it must not be granted.
    fn give(&self, real: &Path, map: &mut AccessMap, given: &mut Vec<(Word, Access)>) -> Result<(), &'static str> {
        let secrets = &self.reach.secrets;
        if secrets.iter().any(|secret| real.starts_with(secret)) {
            return Err("which is secret: only `readable` gives it, by its name");
        }
        // Secrets granted by a setting stay granted.
        let below = secrets.iter().filter(|secret| secret.starts_with(real));
        let below: Vec<_> = below.filter(|secret| map.access(secret) == Access::Hidden).collect();
        map.set(real, Access::Read);
        for secret in below {
            map.set(secret, Access::Hidden);
        }
        if self.bwrap.is_some() && mounts::laid_over(map).is_some() {
            return Err("it contains folders that each worker has privately");
        }
        let mut parts = Vec::new();
        map.give(real, Access::Read, &mut parts);
        given.extend(parts.into_iter().map(|(path, access)| (path.into(), access)));
        Ok(())
    }
}

errors! {
    /// Why workers cannot be confined as configured.
    #[derive(Debug, thiserror::Error)] pub enum Refused;
    Missing(Asked, String): "`handoff.sandbox` is `{0}`, but this machine cannot enforce it: {1}";
    Network(Network, String): "`handoff.network` is `{0}`, but this machine cannot enforce it: {1}";
    Unconfined(Network): "cannot enforce `handoff.network` = `{0}`: `handoff.sandbox` is `none`";
    LaidOver { setting: &'static str, folder: PathBuf }:
        "`{setting}` gives workers {}, which contains folders that each worker has privately (/run, /dev, /proc); name folders below it" [.folder.display()];
    Planted { path: PathBuf, link: PathBuf }:
        "{} is to be reached by workers and leads through {}, a link in what workers may write, which one of them may have put there" [.path.display(), .link.display()];
    PrivateElsewhere(PathBuf):
        "`private` and `login` name paths below your home directory, which {} is not" [.0.display()];
    PrivateFixed(PathBuf):
        "{} cannot be given as a private copy with `home` = `real`, because no variable moves it; use `home` = `private`" [.0.display()];
    #[from] Writable(Missing);
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
