//! Parses git's output for programs: `push --porcelain`, `ls-remote`, and the header of a bundle.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::model::digest::Oid;
use crate::model::printable;

/// The result for one ref of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The ref of the remote.
    pub to: String,
    /// True if the remote has the new value now.
    pub accepted: bool,
    /// The reason of a rejection, or the kind of change, in git's words.
    pub summary: String,
}

impl Answer {
    /// Returns true if the remote refused the ref, false if the local git did.
    pub fn is_by_remote(&self) -> bool {
        !self.accepted && self.summary.starts_with("[remote rejected]")
    }
}

/// Returns the refs that a remote refused, with reasons, and then the accepted ones.
pub fn refused(answers: &[Answer]) -> String {
    let refused = answers.iter().filter(|answer| !answer.accepted);
    let refused = refused.map(|answer| format!("{} {}", answer.to, answer.summary)).collect::<Vec<_>>().join(", ");
    let accepted: Vec<&str> =
        answers.iter().filter(|answer| answer.accepted).map(|answer| answer.to.as_str()).collect();
    if accepted.is_empty() { refused } else { format!("{refused}; it took {}", accepted.join(", ")) }
}

/// Returns true if git reports that the remote does not support atomic pushes.
///
/// A remote's own text follows `remote: `; a host that refuses atomic pushes itself says so there.
pub fn is_not_atomic(stderr: &str) -> bool {
    let lower = stderr.to_ascii_lowercase();
    ["does not support --atomic", "atomic push is not supported", "atomic pushes are not supported"]
        .iter()
        .any(|words| lower.contains(words))
}

/// Parses the output of `git push --porcelain` and skips lines that are not about a ref.
pub fn pushed(text: &str) -> Vec<Answer> {
    text.lines().filter_map(answer).collect()
}

/// Parses the output of `git push --porcelain` into the flag and summary of each ref.
pub fn pushed_lines(text: &str) -> BTreeMap<String, (char, String)> {
    text.lines()
        .filter_map(|line| fields(line).map(|(flag, to, summary)| (to.to_owned(), (flag, printable::line(summary)))))
        .collect()
}

/// Parses the output of `git fetch --porcelain` into the new value of each local ref, `None` for a
/// ref that would be deleted.
pub fn fetched(text: &str) -> BTreeMap<String, Option<Oid>> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.get(2..)?.split(' ');
            let (_, new, name) = (fields.next()?, fields.next()?, fields.next()?);
            let is_gone = line.starts_with('-') || new.bytes().all(|b| b == b'0');
            Some((name.to_owned(), if is_gone { None } else { Some(new.parse().ok()?) }))
        })
        .collect()
}

fn answer(line: &str) -> Option<Answer> {
    let (flag, to, summary) = fields(line)?;
    let accepted = match flag {
        ' ' | '+' | '*' | '=' | '-' => true,
        '!' => false,
        _ => return None,
    };
    Some(Answer { to: to.to_owned(), accepted, summary: printable::line(summary) })
}

/// Splits a line about a ref into its flag, the ref of the remote, and the summary.
fn fields(line: &str) -> Option<(char, &str, &str)> {
    let mut fields = line.splitn(3, '\t');
    let mut flag = fields.next()?.chars();
    let (flag, None) = (flag.next()?, flag.next()) else { return None };
    let (_, to) = fields.next()?.rsplit_once(':')?;
    Some((flag, to, fields.next()?))
}

/// Parses the output of `git ls-remote`: an object id and a name on each line.
pub fn listed(text: &str) -> Vec<(Oid, String)> {
    text.lines()
        .filter_map(|line| {
            let (oid, name) = line.split_once('\t')?;
            Some((oid.parse().ok()?, name.to_owned()))
        })
        .collect()
}

/// Returns true if git reports that received objects failed its checks.
pub fn is_unsound(stderr: &str) -> bool {
    ["fsck error in", "did not send all necessary objects"].iter().any(|words| stderr.contains(words))
        || stderr.lines().any(|line| line.contains("error: object ") && line.contains(", not a "))
}

/// Returns the HTTP status with which, by git's message, a server or proxy refused the request.
///
/// Ignores the remote's own text, which follows `remote: ` and may be anything.
pub fn http_status(stderr: &str) -> Option<u16> {
    stderr.lines().filter(|line| !line.starts_with("remote: ")).find_map(|line| {
        let (_, rest) = ["The requested URL returned error: ", "RPC failed; HTTP "]
            .iter()
            .find_map(|words| line.split_once(words))?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })
}

/// Returns the lock file that already existed, from git's message or ours.
pub fn find_lock(stderr: &str) -> Option<PathBuf> {
    stderr
        .lines()
        .find_map(|line| {
            let git = || {
                line.split_once("Unable to create '")?.1.split_once("': File exists").map(|(path, _)| path.to_owned())
            };
            git()
                .or_else(|| {
                    let (path, _) = line.split_once("could not lock config file ")?.1.split_once(": File exists")?;
                    Some(format!("{path}.lock"))
                })
                .or_else(|| line.split_once(" is locked: ")?.1.strip_suffix(" exists").map(str::to_owned))
        })
        .map(PathBuf::from)
        .filter(|path| path.extension().is_some_and(|end| end == "lock"))
}

/// The header of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleHead {
    /// True for version 3, the only one that has capabilities.
    pub is_newer: bool,
    /// `sha1` or `sha256`.
    pub object_format: String,
    /// The capabilities that a reader needs other than the object format, such as `filter`, which
    /// omits objects; each once.
    pub asks: Vec<String>,
    /// The commits that a reader must have already.
    pub prerequisites: Vec<Oid>,
    /// The refs of the bundle, with their objects.
    pub refs: Vec<(Oid, String)>,
    /// Its length in bytes; the pack follows.
    pub length: usize,
}

/// Parses the header of a bundle of version 2 or 3, or returns `None` if it is invalid or
/// incomplete.
pub fn bundle_head(bytes: &[u8]) -> Option<BundleHead> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let mut lines = str::from_utf8(&bytes[..end]).ok()?.split('\n').peekable();
    let version = lines.next()?;
    let is_newer = version == "# v3 git bundle";
    if version != "# v2 git bundle" && !is_newer {
        return None;
    }
    let (format, asks) = capabilities(std::iter::from_fn(|| lines.next_if(|line| line.starts_with('@'))), is_newer);
    let digits = if format == "sha1" { 40 } else { 64 };
    let mut head = BundleHead {
        is_newer,
        object_format: format.to_owned(),
        asks,
        prerequisites: Vec::new(),
        refs: Vec::new(),
        length: end + 2,
    };
    for line in lines {
        let needed = line.strip_prefix('-');
        let line = needed.unwrap_or(line);
        let (oid, name) = line.split_once(' ').unwrap_or((line, ""));
        let oid: Oid = oid.parse().ok().filter(|_| oid.len() == digits)?;
        if needed.is_some() {
            head.prerequisites.push(oid);
        } else if name.is_empty() {
            return None;
        } else {
            head.refs.push((oid, name.to_owned()));
        }
    }
    Some(head)
}

/// Returns the object format and the other capabilities, each once. A second, different format is
/// among the others, and so is any format in version 2, because readers could disagree about it.
fn capabilities<'a>(lines: impl Iterator<Item = &'a str>, is_newer: bool) -> (&'a str, Vec<String>) {
    let (mut format, mut asks, mut known) = (None, Vec::new(), BTreeSet::new());
    for capability in lines.map(|line| &line[1..]).filter(|capability| known.insert(*capability)) {
        match capability.strip_prefix("object-format=") {
            Some(name @ ("sha1" | "sha256")) if is_newer && format.is_none() => format = Some(name),
            _ => asks.push(capability.to_owned()),
        }
    }
    (format.unwrap_or("sha1"), asks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captured from git 2.47 pushing to a path.
    const PUSHED: &str = "To ../hub\n\
        *\ta1134369fe668301a94828ddbe731d5946ac8243:refs/handoff/runs/r\t[new reference]\n \
        \ta1134369fe668301a94828ddbe731d5946ac8243:refs/handoff/runs/q\ta113436..bad0980\n\
        =\ta1134369fe668301a94828ddbe731d5946ac8243:refs/handoff/runs/p\t[up to date]\n\
        !\tbad09805e64f826faf3d9c15a52f6b0efe614773:refs/handoff/runs/s\t[remote rejected] (hook declined)\n\
        !\tHEAD:refs/handoff/runs/u\t[rejected] (non-fast-forward)\n\
        Done\n";

    /// Captured from git 2.47 pushing to a server that answers 403 to the first request and to the
    /// pack.
    #[test]
    fn an_answer_of_403_is_told_from_what_the_other_side_says() {
        let first =
            "remote: no\nfatal: unable to access 'http://127.0.0.1:8123/hub/': The requested URL returned error: 403";
        let pack = "error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403\nsend-pack: unexpected disconnect";
        assert_eq!((http_status(first), http_status(pack)), (Some(403), Some(403)));
        let by_remote = "remote: The requested URL returned error: 403\nfatal: the remote end hung up unexpectedly";
        assert_eq!(http_status(by_remote), None);
        assert_eq!(http_status(&first.replace("403", "404")), Some(404));
    }

    #[test]
    fn a_lock_file_is_found_in_what_git_says() {
        for (stderr, lock) in [
            (
                "fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git process",
                Some("/r/.git/index.lock"),
            ),
            (
                "fatal: cannot lock ref 'HEAD': Unable to create '/r/a b/.git/HEAD.lock': File exists.",
                Some("/r/a b/.git/HEAD.lock"),
            ),
            ("error: could not lock config file /r/.git/config: File exists", Some("/r/.git/config.lock")),
            ("refs/handoff/runs/r is locked: /r/.git/packed-refs.lock exists", Some("/r/.git/packed-refs.lock")),
            ("error: could not lock config file /r/.git/config: Permission denied", None),
            ("fatal: Unable to create '/r/.git/index': File exists.", None),
            ("", None),
        ] {
            assert_eq!(find_lock(stderr), lock.map(PathBuf::from), "{stderr}");
        }
    }

    #[test]
    fn answers_of_a_push_are_read() {
        let answers = pushed(PUSHED);
        let accepted: Vec<_> =
            answers.iter().map(|a| (a.to.rsplit('/').next().unwrap_or_default(), a.accepted)).collect();
        assert_eq!(accepted, [("r", true), ("q", true), ("p", true), ("s", false), ("u", false)]);
        assert_eq!(answers[3].summary, "[remote rejected] (hook declined)");
        assert_eq!(answers[4].to, "refs/handoff/runs/u");
    }

    #[test]
    fn other_lines_are_skipped() {
        assert_eq!(pushed("To x\nDone\n\n?\ta:b\tc\n!\tnothing\tc\n!\n"), []);
        let hostile = pushed("!\ta:refs/x\t[remote rejected] (\u{1b}[2J)\n");
        assert_eq!(hostile[0].summary, "[remote rejected] (\u{fffd}[2J)");
    }

    #[test]
    fn the_head_of_a_bundle_ends_where_the_pack_begins() {
        let oid = "a1134369fe668301a94828ddbe731d5946ac8243";
        let bytes = format!("# v2 git bundle\n-{oid} subject\n{oid} refs/handoff/runs/r\n\nPACK\n\n");
        let head = bundle_head(bytes.as_bytes()).expect("it is one");
        assert_eq!((head.prerequisites.len(), head.refs.len()), (1, 1));
        assert_eq!(head.refs[0].1, "refs/handoff/runs/r");
        assert!(bytes[head.length..].starts_with("PACK"));
        let long = oid.repeat(2)[..64].to_owned();
        let newer = format!("# v3 git bundle\n@object-format=sha256\n@filter=blob:none\n{long} refs/x\n\n");
        let newer_head = bundle_head(newer.as_bytes()).expect("it is one");
        assert_eq!(
            (newer_head.object_format.as_str(), newer_head.asks),
            ("sha256", vec!["filter=blob:none".to_owned()])
        );
        for bad in ["", "# v2 git bundle\n", "# v4 git bundle\n\n", "# v2 git bundle\nx\n\n"] {
            assert_eq!(bundle_head(bad.as_bytes()), None, "{bad:?}");
        }
        let twice = format!("# v3 git bundle\n@object-format=sha1\n@object-format=sha1\n{oid} refs/x\n\n");
        assert_eq!(bundle_head(twice.as_bytes()).expect("it is one").asks, Vec::<String>::new());
        for line in [
            format!("{oid} "),
            oid.to_owned(),
            format!("{oid}refs/x"),
            format!("{long} refs/x"),
            format!("-{long}"),
            format!("{oid} refs/x\n@object-format=sha1"),
        ] {
            let header = format!("# v3 git bundle\n{line}\n\n");
            assert_eq!(bundle_head(header.as_bytes()), None, "{line:?}");
        }
        let latin = [b"# v2 git bundle\n", oid.as_bytes(), b" refs/\xe4\n\n"].concat();
        assert_eq!(bundle_head(&latin), None);
        for (variant, asks) in [
            ("# v3 git bundle\n@what\n\n", "what"),
            ("# v3 git bundle\n@object-format=sha512\n\n", "object-format=sha512"),
            ("# v3 git bundle\n@object-format=sha1\n@object-format=sha256\n\n", "object-format=sha256"),
            ("# v2 git bundle\n@object-format=sha1\n\n", "object-format=sha1"),
        ] {
            assert_eq!(bundle_head(variant.as_bytes()).expect(variant).asks, [asks]);
        }
    }
}
