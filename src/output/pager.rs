//! The pager for long output, chosen and started as git does.
//!
//! If git itself starts a pager (`git --paginate handoff …`, `pager.handoff`), this code does
//! nothing.

use std::io::{self, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::interrupt;

/// git's default environment for pagers.
const DEFAULTS: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// Characters that make git run a command in a shell.
const SHELL: &str = "|&;<>()$`\\\"' \t\n*?[#~=%";

/// A shell's exit codes for a missing or unusable command.
const NO_COMMAND: [i32; 2] = [126, 127];

/// How often to check whether the pager has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// The running pager. It has the terminal, so the program must not end before it.
static RUNNING: Mutex<Option<Child>> = Mutex::new(None);

/// A pager, started with the first byte of output.
pub(crate) struct Pager {
    command: String,
    /// The [`DEFAULTS`] that the environment does not set.
    unset: Vec<(&'static str, &'static str)>,
    input: Input,
}

/// The state of the output.
enum Input {
    /// Not started.
    Waits,
    /// Goes to the pager.
    Open(ChildStdin),
    /// The pager has ended.
    Closed,
}

impl Pager {
    /// Creates a pager for a command; `is_set` tests environment variables.
    pub(crate) fn new(command: String, is_set: impl Fn(&str) -> bool) -> Self {
        let unset = DEFAULTS.into_iter().filter(|(name, _)| !is_set(name)).collect();
        Self { command, unset, input: Input::Waits }
    }

    /// Returns true if the pager has the terminal.
    pub(crate) fn is_running(&self) -> bool {
        !matches!(self.input, Input::Waits)
    }

    /// Writes to the pager. Fails if it cannot be started or written to; a closed pager is no
    /// error.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Input::Waits = self.input {
            self.input = self.start()?;
        }
        let Input::Open(pipe) = &mut self.input else { return Ok(()) };
        match pipe.write_all(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.input = Input::Closed;
                Ok(())
            }
            result => result,
        }
    }

    /// Waits for the pager to end; returns its command if it could not be run.
    pub(crate) fn end(self) -> Option<String> {
        let is_running = self.is_running();
        drop(self.input);
        let ended = is_running.then(wait).flatten();
        let code = ended.and_then(|status| status.code());
        code.filter(|code| NO_COMMAND.contains(code)).map(|_| self.command)
    }

    fn start(&self) -> io::Result<Input> {
        // Ctrl-C is for the pager, which has the terminal.
        interrupt::tidy();
        let mut command = if self.command.contains(|c| SHELL.contains(c)) {
            let mut shell = Command::new("sh");
            shell.args(["-c", &self.command]);
            shell
        } else {
            Command::new(&self.command)
        };
        let mut child = command.envs(self.unset.iter().copied()).stdin(Stdio::piped()).spawn()?;
        let input = child.stdin.take().map_or(Input::Closed, Input::Open);
        *running() = Some(child);
        Ok(input)
    }
}

/// Waits for the pager, if any, without blocking other waiters; returns its exit status.
pub(crate) fn wait() -> Option<ExitStatus> {
    loop {
        let ended = running().as_mut()?.try_wait();
        match ended {
            Ok(None) => thread::sleep(PAUSE),
            ended => return ended.ok().flatten(),
        }
    }
}

fn running() -> MutexGuard<'static, Option<Child>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
