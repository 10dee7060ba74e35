//! The pager that long answers go through, decided and started as git does it for its own commands.
//!
//! What git pages itself (`git --paginate handoff …`, `pager.handoff`) reaches a pipe and not a terminal, and is left alone here.

use std::io::{self, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::interrupt;

/// What git hands a pager that was not told otherwise.
const DEFAULTS: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// What git leaves to a shell: a command with any of these.
const SHELL: &str = "|&;<>()$`\\\"' \t\n*?[#~=%";

/// How a shell says that there is no such command, or none that can be run.
const NO_COMMAND: [i32; 2] = [126, 127];

/// How often it is looked whether the pager is gone.
const PAUSE: Duration = Duration::from_millis(20);

/// The pager that runs. It has the terminal, so that nobody ends before it does.
static RUNNING: Mutex<Option<Child>> = Mutex::new(None);

/// A pager for one answer, which is started with the first byte of it.
pub(super) struct Pager {
    command: String,
    /// Which of [`DEFAULTS`] the environment leaves to be set.
    unset: Vec<(&'static str, &'static str)>,
    input: Input,
}

/// What becomes of an answer.
enum Input {
    /// There was none yet.
    Waits,
    /// It goes to the pager.
    Open(ChildStdin),
    /// Whoever reads has seen enough.
    Closed,
}

impl Pager {
    /// Names the command; `is_set` says which variables the environment has.
    pub(super) fn new(command: String, is_set: impl Fn(&str) -> bool) -> Self {
        let unset = DEFAULTS.into_iter().filter(|(name, _)| !is_set(name)).collect();
        Self { command, unset, input: Input::Waits }
    }

    /// Returns whether it has the terminal.
    pub(super) fn is_running(&self) -> bool {
        !matches!(self.input, Input::Waits)
    }

    /// Hands it bytes; an error says that it could not be started, or not be written to. That it was left is none.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
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

    /// Waits until whoever reads has seen enough; returns the command where it was none.
    pub(super) fn end(self) -> Option<String> {
        let is_running = self.is_running();
        drop(self.input);
        let ended = is_running.then(wait).flatten();
        let code = ended.and_then(|status| status.code());
        code.filter(|code| NO_COMMAND.contains(code)).map(|_| self.command)
    }

    fn start(&self) -> io::Result<Input> {
        // Who interrupts means the pager, which has the terminal, and only after it us.
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

/// Waits until the pager is gone, if there is one; returns how it ended. Whoever else waits is not kept from it.
pub(super) fn wait() -> Option<ExitStatus> {
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
