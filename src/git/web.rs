//! Tells a git server from a web page.
//!
//! git takes any answer over HTTP that is not its own protocol for the list of refs of a repository that is served as plain
//! files. A page without a line break, or an empty answer, then is a repository without refs. So an empty list that came over
//! HTTP only counts if the server sent it as git does.

use std::fs;

use super::porcelain;
use super::program::{self, Git};
use super::temporary::Temporary;
use crate::model::digest::Oid;
use crate::model::printable;

/// The type of git's own answer, as curl reports it in lower case.
const ADVERTISEMENT: &str = "recv header: content-type: application/x-git-upload-pack-advertisement";

/// What the file `HEAD` of a repository that is served as plain files begins with.
const HEAD: &str = "recv data: ref: refs/";

/// How git says that the list of refs is none.
const NOT_VALID: &str = "not valid: is this a git repository?";

/// The most characters of a page that are shown.
const SHOWN: usize = 120;

/// Returns true if git says that it was answered with something else than a list of refs.
pub(super) fn is_page(error: &program::Error) -> bool {
    matches!(error, program::Error::Failed { said, .. } if said.contains(NOT_VALID))
}

/// Returns what answered in the place of a repository, or `None` if a repository or no web server did.
///
/// `call` makes a call of git that may reach the remote.
pub(super) fn page(call: &dyn Fn() -> Git, from: &str) -> Result<Option<String>, program::Error> {
    let url = call().args(["ls-remote", "--get-url", "--", from]).line()?.to_ascii_lowercase();
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Ok(None);
    }
    let heard = Heard::listen(call, from, false)?;
    if heard.trace.contains(ADVERTISEMENT) || !heard.refs.is_empty() {
        return Ok(None);
    }
    let heard = Heard::listen(call, from, true)?;
    Ok(if heard.trace.contains(HEAD) { None } else { Some(heard.described()) })
}

/// One listing of a remote, with what curl reports of it.
struct Heard {
    refs: Vec<(Oid, String)>,
    /// The report in lower case.
    trace: String,
    /// The report.
    raw: String,
}

impl Heard {
    fn listen(call: &dyn Fn() -> Git, from: &str, data: bool) -> Result<Self, program::Error> {
        let folder = Temporary::new().map_err(program::Error::Pipe)?;
        let file = folder.path().join("trace");
        let call = call().env("GIT_TRACE_CURL", &file).env("GIT_TRACE_REDACT", "1");
        let call = if data { call } else { call.env("GIT_TRACE_CURL_NO_DATA", "1") };
        let listed = match call.args(["ls-remote", "--quiet", "--", from]).run() {
            Err(error) if is_page(&error) => Vec::new(),
            other => other?,
        };
        let raw = fs::read(&file).map_err(program::Error::Pipe)?;
        let raw = String::from_utf8_lossy(&raw).into_owned();
        let refs = porcelain::listed(&String::from_utf8_lossy(&listed));
        Ok(Self { refs, trace: raw.to_ascii_lowercase(), raw })
    }

    /// Returns the type of the answer and how it begins, in one line.
    fn described(&self) -> String {
        let header = |name: &str| {
            let fields = self.raw.lines().filter_map(|line| line.split_once("Recv header: ")?.1.split_once(": "));
            fields.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
        };
        // Only the first body: git may ask for the file HEAD as well.
        let data = self.raw.lines().map(|line| Some(line.split_once("Recv data: ")?.1.trim()));
        let data: Vec<&str> = data.skip_while(Option::is_none).map_while(|line| line).collect();
        let kind = header("content-type").unwrap_or("no content type");
        // A packed answer is reported as it came.
        let text = if header("content-encoding").is_some() { String::new() } else { data.join(" ") };
        let mut short: String = text.chars().take(SHOWN).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        let end = if short.is_empty() { String::new() } else { format!(": {short}") };
        printable::line(&format!("{kind}{end}"))
    }
}
