//! Distinguishes a git server from a web page.
//!
//! git takes any HTTP response that is not its protocol for the refs of a repository served as
//! plain files. A page without a newline or an empty response then looks like a repository without
//! refs. So an empty list over HTTP counts only if a git server sent it.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::porcelain;
use super::program::{self, Git};
use super::temporary::Temporary;
use crate::model::printable;

/// The content type of git's protocol, as curl reports it in lower case.
const ADVERTISEMENT: &str = "recv header: content-type: application/x-git-upload-pack-advertisement";

/// The start of the file `HEAD` of a repository served as plain files.
const HEAD: &str = "recv data: ref: refs/";

/// git's message for an invalid list of refs.
const NOT_VALID: &str = "not valid: is this a git repository?";

/// The most characters of a page to show.
const SHOWN: usize = 120;

/// Returns true if git reports that the response was not a list of refs.
pub(super) fn is_page(error: &program::Error) -> bool {
    matches!(error, program::Error::Failed { stderr, .. } if stderr.contains(NOT_VALID))
}

/// curl's report of one listing of a remote over HTTP.
pub(super) struct Trace {
    folder: Temporary,
}

impl Trace {
    /// Creates the file for a report.
    pub(super) fn new() -> Result<Self, program::Error> {
        Ok(Self { folder: Temporary::new().map_err(program::Error::Pipe)? })
    }

    /// Makes a git command report the response headers.
    pub(super) fn trace_call(&self, call: Git) -> Git {
        self.of_all(call).env("GIT_TRACE_CURL_NO_DATA", "1")
    }

    fn of_all(&self, call: Git) -> Git {
        call.env("GIT_TRACE_CURL", self.file()).env("GIT_TRACE_REDACT", "1")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// Returns the report, empty if there was no HTTP response.
    fn read(&self) -> Result<String, program::Error> {
        match fs::read(self.file()) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(program::Error::Pipe(error)),
        }
    }

    /// Describes the page that answered instead of a repository, or returns `None` for a repository
    /// or another transport.
    ///
    /// `call` returns a git command that may reach the remote.
    pub(super) fn page(&self, call: &dyn Fn() -> Git, from: &str) -> Result<Option<String>, program::Error> {
        let report = self.read()?;
        if report.is_empty() || report.to_ascii_lowercase().contains(ADVERTISEMENT) {
            return Ok(None);
        }
        // It may be a repository served as plain files without refs of ours.
        let whole = Self::new()?;
        let listed = match whole.of_all(call()).args(["ls-remote", "--quiet", "--", from]).run() {
            Err(error) if is_page(&error) => Vec::new(),
            other => other?,
        };
        let text = whole.read()?;
        let has_refs = !porcelain::listed(&String::from_utf8_lossy(&listed)).is_empty();
        let is_repository = has_refs || text.to_ascii_lowercase().contains(HEAD);
        Ok(if is_repository { None } else { Some(described(&text)) })
    }
}

/// Returns the content type and start of a response in one line.
fn described(report: &str) -> String {
    // Only the first body: git may also request the file HEAD.
    let data = report.lines().map(|line| Some(line.split_once("Recv data: ")?.1.trim()));
    let data: Vec<&str> = data.skip_while(Option::is_none).map_while(|line| line).collect();
    let kind = find_header("content-type", report).unwrap_or("no content type");
    // A compressed body is not decoded in the report.
    let text = if find_header("content-encoding", report).is_some() { String::new() } else { data.join(" ") };
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    let end = if short.is_empty() { String::new() } else { format!(": {short}") };
    printable::line(&format!("{kind}{end}"))
}

fn find_header<'r>(name: &str, report: &'r str) -> Option<&'r str> {
    let fields = report.lines().filter_map(|line| line.split_once("Recv header: ")?.1.split_once(": "));
    fields.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}
