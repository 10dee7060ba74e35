//! Confines a process before it runs a command: in the supervisor's child, or, below bubblewrap, in
//! a process of ours that starts the command.
//!
//! The process reads its settings and the command's input from a socket on standard input, each as
//! a length in 8 bytes, most significant first, and the bytes. It writes `ready` when it is
//! confined and then its result: `failed …`, or a supervisor's report. It lives as long as the
//! command, because bubblewrap does not distinguish a signal from an exit code.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use landlock::RulesetCreated;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::BpfProgram;

use crate::model::causes::in_words;
use crate::model::confinement::Network;
use crate::process::agent;
use crate::process::supervisor::{self, Report};
use crate::sandbox::mount_identity::{self, Changed, MountIdentity};
use crate::sandbox::{ExecSetup, Inner, calls, files};

/// The first argument that makes the program confine itself.
pub const ARGUMENT: &str = "confine-attempt";

/// The message after a successful confinement.
pub(crate) const READY: &str = "ready\n";
/// The start of the message after a failed confinement; the reason follows.
pub(crate) const FAILED: &str = "failed ";

/// Confines this process and runs the command in the arguments. This is the process's whole life.
///
/// Call this first in a program's `main`.
pub fn serve(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) {
        Ok(mut line) => run(arguments, &mut line).unwrap_or(ExitCode::FAILURE),
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(mut arguments: impl Iterator<Item = OsString>, line: &mut UnixStream) -> io::Result<ExitCode> {
    // No process inside may read our messages or speak for us.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let program = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    let message = supervisor::serving::bytes(line)?;
    let (inner, setup): (Inner, ExecSetup) = serde_json::from_slice(&message)?;
    let stdin = supervisor::serving::given(line)?;
    let mut command = setup.command(&program, arguments, stdin);
    if let Err(error) = Prepared::new(&inner, true).and_then(|mut prepared| prepared.apply()) {
        let reason = in_words(&error).replace('\n', " ");
        line.write_all(format!("{FAILED}{reason}\n").as_bytes())?;
        return Ok(ExitCode::FAILURE);
    }
    line.write_all(READY.as_bytes())?;
    let report = match command.spawn() {
        Ok(mut child) => agent::exit_of(child.wait()?).map_or(Report::Left(None), Report::Ended),
        Err(error) => Report::NotStarted(error.raw_os_error().unwrap_or(libc::EINVAL)),
    };
    line.write_all(report.write().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// A prepared confinement, of which only system calls are left.
pub(crate) struct Prepared {
    /// The Landlock rules, and the required version.
    rules: Option<(RulesetCreated, u32)>,
    filters: Vec<BpfProgram>,
}

impl Prepared {
    /// Prepares it from the message; `below` is true for a process below bubblewrap.
    pub(crate) fn new(inner: &Inner, below: bool) -> Result<Self, Error> {
        if below {
            inner.identities.iter().try_for_each(MountIdentity::stays)?;
            inner.mounted.iter().try_for_each(mount_identity::is_mounted)?;
        }
        let rules =
            inner.landlock.map(|version| Ok::<_, Error>((files::rules(&inner.given, inner.network, below)?, version)));
        let filters = if inner.seccomp { calls::filters(inner.network, !below)? } else { Vec::new() };
        Ok(Self { rules: rules.transpose()?, filters })
    }

    /// Confines this process and its children, in an order in which no step blocks the next.
    ///
    /// Allocates nothing unless it fails.
    pub(crate) fn apply(&mut self) -> Result<(), Error> {
        limit()?;
        rustix::thread::set_no_new_privs(true).map_err(Error::at("no_new_privs"))?;
        drop_rights()?;
        if let Some((rules, version)) = self.rules.take() {
            match files::apply(rules)? {
                Some(found) if found >= version => {}
                found => return Err(Error::Older { found: found.unwrap_or(0), version }),
            }
        }
        Ok(calls::apply(&self.filters)?)
    }
}

/// Sets the limits that the kernel enforces for each process.
fn limit() -> Result<(), Error> {
    // A core dump would copy memory with its secrets to the machine's usual place.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(Resource::Core, none).map_err(Error::at("the limit of core files"))
}

/// Drops root's capabilities; without new privileges, no program restores them.
fn drop_rights() -> Result<(), Error> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).map_err(Error::at("the rights of root"))?;
    rustix::thread::clear_ambient_capability_set().map_err(Error::at("the rights of root"))
}

/// Reports the layers that could confine this process in its exit code. This is the process's whole
/// life.
pub fn probe() -> ExitCode {
    let rules = files::rules(&[], Network::None, false);
    let landlock = rules.and_then(files::apply).ok().flatten();
    let rights = rustix::thread::set_no_new_privs(true).is_ok() && drop_rights().is_ok();
    let seccomp = rights && calls::filters(Network::None, true).is_ok_and(|filters| calls::apply(&filters).is_ok());
    ExitCode::from(crate::sandbox::probe::code(landlock, seccomp))
}

errors! {
    /// Why a process could not confine itself.
    #[derive(Debug, thiserror::Error)] pub(crate) enum Error;
    System(&'static str, #[source] io::Error): "{0} could not be set";
    Landlock(#[from] landlock::RulesetError): "Landlock refused the rules";
    Older { found: u32, version: u32 }: "Landlock has version {found}, but version {version} is recorded";
    #[from] Changed(Changed), Calls(calls::Error);
}

impl Error {
    fn at(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |error| Self::System(what, error.into())
    }
}
