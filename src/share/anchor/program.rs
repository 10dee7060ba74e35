//! Programs that send requests to anchors, as git's remote helpers do:
//! `git-handoff-anchor-<kind>`. Each request is a process of its own, with limits of time and size:
//! one line of JSON on its standard input, and one on its standard output.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use base64ct::{Base64, Encoding as _};
use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;

use super::Means;
use crate::git::temporary::Temporary;
use crate::model::printable::line;

/// How the name of a program begins; the kind of anchor follows.
const PREFIX: &str = "git-handoff-anchor-";

/// The program of the kind `s3`.
pub(super) const S3: &str = concat!(include_str!("programs/send.sh"), include_str!("programs/s3.sh"));

/// The program of the kind `rfc3161`.
pub(super) const RFC3161: &str = concat!(include_str!("programs/send.sh"), include_str!("programs/rfc3161.sh"));

/// Passes the first line of standard input to a program that can write no large file. When standard
/// input ends, because this process needs no answer any more or ended itself, the process group is
/// killed.
const GUARD: &str = r#"exec 3<&0
IFS= read -r request || exit 1
{ cat <&3; kill -KILL 0; } >/dev/null 2>&1 &
ulimit -f "$1" || exit 1
shift
printf '%s\n' "$request" | "$@" 3<&-"#;

/// The maximum length of an answer beside its bytes.
const REST: u64 = 256 << 10;

/// How often to look whether a program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// The maximum length of an excerpt.
const SHOWN: usize = 120;

/// A program that sends requests.
pub(super) struct Program(Vec<String>);

/// An answer over HTTP.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    /// `late`, `long`, `credentials` or `unreachable`, instead of an answer.
    error: Option<String>,
    message: String,
    status: String,
    headers: String,
    body: String,
}

/// A decoded answer.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    headers: String,
}

impl Program {
    /// Returns one of our own programs.
    pub(super) fn own(kind: &str, script: &str) -> Self {
        Self(["sh", "-c", script, &format!("{PREFIX}{kind}")].map(str::to_owned).into())
    }

    /// Finds the program of a kind of anchor in the first folder that has it.
    pub(super) fn find(kind: &str, folders: &[PathBuf]) -> Option<Self> {
        let mut paths = folders.iter().map(|folder| folder.join(format!("{PREFIX}{kind}")));
        let found = paths.find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())?;
        (!kind.contains('/')).then(|| found.to_str().map(|path| Self(vec![path.to_owned()])))?
    }

    /// Sends a request, and returns the answer with a body of up to `limit` bytes.
    pub(super) fn ask(
        &self,
        means: &Means,
        within: Duration,
        limit: u64,
        request: &[(&str, &str)],
    ) -> Result<Reply, Error> {
        let (seconds, most) = (within.as_secs().to_string(), limit.to_string());
        let mut fields: BTreeMap<&str, &str> = request.iter().copied().collect();
        fields.extend([("limit", most.as_str()), ("timeout", seconds.as_str())]);
        let text = serde_json::to_string(&fields).expect("texts are valid JSON") + "\n";
        let name = self.0.last().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
        let failed = |why: String| Error::Unreachable(format!("{name} {why}"));
        let room = limit * 2 + REST;
        let folder = Temporary::new().map_err(|error| failed(format!("has no folder: {error}")))?;
        let ended = self.run(means, folder.path(), &text, within, room);
        let status = ended.map_err(|error| failed(format!("cannot be run: {error}")))?;
        let status = status.ok_or(Error::Late(within.as_secs()))?;
        let output =
            read_start("answer", room + 1, folder.path()).map_err(|error| failed(format!("has no answer: {error}")))?;
        if output.len() as u64 > room {
            return Err(Error::Long(limit));
        }
        if !status.success() {
            let messages = read_start("messages", REST, folder.path()).unwrap_or_default();
            return Err(failed(format!("failed with {status}: {}", shorten(&String::from_utf8_lossy(&messages)))));
        }
        let answer: Answer = serde_json::from_slice(&output).unwrap_or_default();
        match answer.error.as_deref() {
            None => {}
            Some("late") => return Err(Error::Late(within.as_secs())),
            Some("long") => return Err(Error::Long(limit)),
            Some("credentials") => return Err(Error::Credentials(shorten(&answer.message))),
            Some(_) => return Err(Error::Unreachable(shorten(&answer.message))),
        }
        let reply = Reply::read(&answer).ok_or_else(|| {
            failed(format!("gives no answer of the right form, but: {}", shorten(&String::from_utf8_lossy(&output))))
        })?;
        match reply.status {
            300..400 => Err(Error::Redirect(reply.status)),
            _ if reply.body.len() as u64 > limit => Err(Error::Long(limit)),
            _ => Ok(reply),
        }
    }

    /// Runs the program in a folder; returns `None` if it has not ended in time.
    fn run(
        &self,
        means: &Means,
        folder: &Path,
        request: &str,
        within: Duration,
        room: u64,
    ) -> io::Result<Option<ExitStatus>> {
        let file = |name: &str| File::create(folder.join(name));
        let (answer, messages) = (file("answer")?, file("messages")?);
        let scratch = folder.join("scratch");
        fs::create_dir(&scratch)?;
        let mut command = Command::new("sh");
        // In blocks of 512 bytes, and one more than what is read.
        command.args(["-c", GUARD, PREFIX, &(room / 512 + 2).to_string()]).args(&self.0);
        command.env_clear().envs(means.variables.iter()).current_dir(scratch);
        command.stdin(Stdio::piped()).stdout(answer).stderr(messages);
        let mut child = command.process_group(0).spawn()?;
        let mut guarded = child.stdin.take().expect("stdin is piped");
        guarded.write_all(request.as_bytes())?;
        let until = Instant::now() + within;
        loop {
            match child.try_wait()? {
                Some(status) => return Ok(Some(status)),
                None if Instant::now() < until => thread::sleep(LOOK),
                None => break,
            }
        }
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        group.map(|group| kill_process_group(group, Signal::KILL)).transpose()?;
        child.wait().map(|_| None)
    }
}

fn read_start(name: &str, most: u64, folder: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(folder.join(name)).and_then(|file| file.take(most).read_to_end(&mut text)).map(|_| text)
}

impl Reply {
    fn read(answer: &Answer) -> Option<Self> {
        let headers = String::from_utf8_lossy(&Base64::decode_vec(&answer.headers).ok()?).into_owned();
        Some(Self { status: answer.status.parse().ok()?, body: Base64::decode_vec(&answer.body).ok()?, headers })
    }

    /// Returns true if the request was carried out.
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the start of the body on one line, for messages.
    pub(super) fn excerpt(&self) -> String {
        match std::str::from_utf8(&self.body) {
            Ok(text) if text.trim().is_empty() => "it is empty".to_owned(),
            Ok(text) if !text.contains('\0') => shorten(text),
            _ => {
                let kind = self.header("content-type").unwrap_or("no type that is said");
                line(&format!("it is {} bytes of {kind}", self.body.len()))
            }
        }
    }

    /// Returns a header of the last response; there may be interim ones before it.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let last = self.headers.lines().rev().take_while(|line| !line.starts_with("HTTP/"));
        let mut fields = last.filter_map(|line| line.split_once(':'));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Returns the start of a text on one line.
pub(super) fn shorten(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = words.chars().take(SHOWN).collect();
    if short.len() < words.len() {
        short.push('…');
    }
    line(&short)
}

errors! {
    /// The reason for a missing answer. It never has the URL, which may contain a password.
    #[derive(Debug, thiserror::Error)] pub enum Error = "time-stamp";
    Late(u64): "there was no answer after {0} seconds";
    Long(u64): "the answer is longer than {0} bytes";
    Redirect(u16): "the answer is a redirect (status {0}), which is not followed";
    Credentials(String): "{0}";
    Unreachable(String): "it could not be reached: {0}";
}

impl Error {
    /// Returns true if the next request would fail for the same reason.
    pub(super) fn is_for_all(&self) -> bool {
        !matches!(self, Self::Long(_) | Self::Redirect(_))
    }
}
