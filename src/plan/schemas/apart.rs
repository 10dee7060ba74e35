//! Starts the process that checks, gives it schema and values, and takes its answers.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use super::bounds::{MEMORY, SECONDS, WAIT};
use super::judge::Answer;

/// The command of the program that answers.
pub const COMMAND: &str = "check-schema";

/// How often a process is started that somebody else ends.
const TRIES: usize = 3;

/// The most bytes of answers that are read: many times what can be said.
const MAX_ANSWERS: u64 = 64 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Failed {
    #[error("that takes more than {SECONDS} seconds of computing or {} MiB of memory", MEMORY >> 20)]
    Unbounded,
    #[error("that was not done after {} seconds", WAIT.as_secs())]
    Late,
    #[error("no program was named that checks schemas")]
    NoChecker,
    #[error("the program that checks schemas could not be started")]
    Start(#[source] io::Error),
    #[error("the program that checks schemas was ended")]
    Ended,
    #[error("the program that checks schemas ended without an answer")]
    Silent,
}

/// Asks; the answers end early where something failed.
pub(super) fn ask(checker: &Path, schema: &str, values: &[&[u8]]) -> (Vec<Answer>, Option<Failed>) {
    let mut asked = ask_once(checker, schema, values);
    // Who ends all of us, as a terminal does, says nothing about the schema; we may have more to do before we end.
    for _ in 1..TRIES {
        if !matches!(asked.1, Some(Failed::Ended)) {
            break;
        }
        asked = ask_once(checker, schema, values);
    }
    asked
}

fn ask_once(checker: &Path, schema: &str, values: &[&[u8]]) -> (Vec<Answer>, Option<Failed>) {
    let mut command = Command::new(checker);
    // It stays in our process group: nobody takes it for what a worker left behind.
    command.arg(COMMAND).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return (Vec::new(), Some(Failed::Start(error))),
    };
    let stdin = child.stdin.take().expect("stdin is piped");
    let stdout = child.stdout.take().expect("stdout is piped");
    let (send, receive) = mpsc::channel();
    let started = thread::scope(|scope| {
        let giving = thread::Builder::new().spawn_scoped(scope, move || give(stdin, schema, values));
        let taking = giving.and_then(|_| {
            // Nobody may be waiting for them any more.
            thread::Builder::new().spawn_scoped(scope, move || drop(send.send(take(stdout))))
        });
        let answers = taking.map(|_| receive.recv_timeout(WAIT));
        if !matches!(answers, Ok(Ok(_))) {
            // It may have ended by itself in this moment.
            let _ = child.kill();
        }
        answers
    });
    let status = child.wait();
    match (started, status) {
        (Ok(Ok(answers)), Ok(status)) => {
            let failed = if is_complete(&answers, values.len()) { None } else { Some(why(status)) };
            (answers, failed)
        }
        (Ok(Err(_)), Ok(_)) => (Vec::new(), Some(Failed::Late)),
        (Err(error), _) | (_, Err(error)) => (Vec::new(), Some(Failed::Start(error))),
    }
}

/// Gives it schema and values, as far as it takes them: one that ends early is told by its answers.
fn give(mut stdin: ChildStdin, schema: &str, values: &[&[u8]]) {
    for bytes in std::iter::once(&schema.as_bytes()).chain(values) {
        let length = (bytes.len() as u64).to_le_bytes();
        if stdin.write_all(&length).and_then(|()| stdin.write_all(bytes)).is_err() {
            return;
        }
    }
}

/// Takes its answers, up to the first that is none.
fn take(stdout: ChildStdout) -> Vec<Answer> {
    let lines = BufReader::new(stdout.take(MAX_ANSWERS)).split(b'\n');
    lines.map_while(|line| serde_json::from_slice(&line.ok()?).ok()).collect()
}

fn is_complete(answers: &[Answer], values: usize) -> bool {
    matches!(answers, [Answer::Usable, rest @ ..] if rest.len() == values) || matches!(answers, [Answer::BadSchema(_)])
}

/// Says what a process died of that did not answer everything: the system ends one with a signal where it wants too much.
fn why(status: ExitStatus) -> Failed {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        use rustix::process::Signal;
        let from_outside = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
        let ended = from_outside.iter().any(|outside| outside.as_raw() == signal);
        return if ended { Failed::Ended } else { Failed::Unbounded };
    }
    let _ = status;
    Failed::Silent
}
