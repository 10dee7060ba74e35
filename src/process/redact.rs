//! Removes secrets from text before it is hashed or stored. Pure.
//!
//! Removes only given values and known shapes, never text that merely looks random: hashes in a
//! transcript stay.

use std::ops::Range;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

use crate::model::credential;
use crate::model::credential::values::Values;

/// The longest line that is held back. Longer lines are cut, and [`OVERLAP`] bytes are scanned
/// again.
const LONGEST_LINE: usize = 64 << 10;

/// The bytes of a long line to keep in case a secret starts there.
const OVERLAP: usize = 8 << 10;

/// The most bytes after the first line of a private key; more means that it was no key.
const LONGEST_KEY: usize = 32 << 10;

/// A redactor for one stream of bytes.
///
/// Output comes in whole lines, so that a secret in two pieces is not missed. Bytes may be held
/// back until [`Redactor::finish`]. Memory is bounded for any input.
#[derive(Clone, Debug)]
pub struct Redactor {
    secrets: Values,
    pending: Vec<u8>,
    overlap: usize,
    /// The bytes read so far of a possible private key.
    in_key: Option<usize>,
}

impl Redactor {
    /// Creates a redactor for these secret values in any encoding. Each line of a multi-line value
    /// is a secret.
    pub fn new(secrets: &[Vec<u8>]) -> Self {
        let secrets = Values::new(secrets);
        let overlap = OVERLAP.max(secrets.longest());
        Self { secrets, pending: Vec::new(), overlap, in_key: None }
    }

    /// Adds bytes and appends the redacted output to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for piece in bytes.chunks(LONGEST_LINE) {
            self.pending.extend_from_slice(piece);
            if let Some(end) = self.pending.iter().rposition(|byte| *byte == b'\n') {
                self.emit(end + 1, out);
            }
            if self.pending.len() > LONGEST_LINE.max(2 * self.overlap) {
                self.emit(self.pending.len() - self.overlap, out);
            }
        }
    }

    /// Appends the bytes held back.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.emit(self.pending.len(), out);
    }

    /// Moves the pending bytes up to `end` to `out`, or further if a secret crosses `end`.
    fn emit(&mut self, end: usize, out: &mut Vec<u8>) {
        let found = self.find();
        let end = found.iter().find(|(at, _)| at.start < end && end < at.end).map_or(end, |(at, _)| at.end);
        let mut clean = Vec::with_capacity(end);
        let mut from = 0;
        for (at, name) in found.into_iter().filter(|(at, _)| at.start < end) {
            clean.extend_from_slice(&self.pending[from..at.start]);
            clean.extend_from_slice(format!("[redacted:{name}]").as_bytes());
            from = at.end;
        }
        clean.extend_from_slice(&self.pending[from..end]);
        self.pending.drain(..end);
        self.drop_keys(&clean, out);
    }

    /// Returns the secrets in the pending bytes, sorted and without overlap.
    fn find(&self) -> Vec<(Range<usize>, &'static str)> {
        let mut found: Vec<(Range<usize>, &'static str)> =
            self.secrets.find(&self.pending).map(|at| (at, "secret")).collect();
        // Private keys have many lines and are dropped below.
        found.extend(credential::find_eagerly(&self.pending).into_iter().filter(|(_, name)| *name != "private-key"));
        credential::merge_overlaps(found)
    }

    /// Copies text without private keys, which have many lines.
    fn drop_keys(&mut self, mut text: &[u8], out: &mut Vec<u8>) {
        static MARKERS: OnceLock<[Regex; 2]> = OnceLock::new();
        let [begin, end] = MARKERS.get_or_init(|| {
            [r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----", r"-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----"]
                .map(compiled)
        });
        while !text.is_empty() {
            let Some(left) = self.in_key else {
                let Some(at) = begin.find(text) else {
                    out.extend_from_slice(text);
                    return;
                };
                out.extend_from_slice(&text[..at.start()]);
                out.extend_from_slice(b"[redacted:private-key]");
                text = &text[at.end()..];
                self.in_key = Some(LONGEST_KEY);
                continue;
            };
            let window = &text[..text.len().min(left)];
            let (used, open) = match end.find(window) {
                Some(at) => (at.end(), false),
                None => (window.len(), window.len() < left),
            };
            text = &text[used..];
            self.in_key = open.then(|| left - used);
        }
    }
}

fn compiled(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).unicode(false).build().expect("the patterns in this file are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(secrets: &[&str], text: &str) -> String {
        let secrets: Vec<Vec<u8>> = secrets.iter().map(|s| s.as_bytes().to_vec()).collect();
        let whole = in_pieces(&secrets, text, usize::MAX);
        for size in [1, 2, 3, 7] {
            assert_eq!(in_pieces(&secrets, text, size), whole, "in pieces of {size}");
        }
        whole
    }

    fn in_pieces(secrets: &[Vec<u8>], text: &str, size: usize) -> String {
        let (mut redactor, mut out) = (Redactor::new(secrets), Vec::new());
        for piece in text.as_bytes().chunks(size.min(text.len().max(1))) {
            redactor.push(piece, &mut out);
        }
        redactor.finish(&mut out);
        String::from_utf8(out).expect("redacting text gives text")
    }

    #[test]
    fn takes_out_named_shapes() {
        let body = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
        for (text, expected) in [
            (format!("token ghp_{body}!"), "token [redacted:github-token]!"),
            (format!("ghs_{body}"), "[redacted:github-token]"),
            (format!("github_pat_{body}_x"), "[redacted:github-token]"),
            ("id=AKIAIOSFODNN7EXAMPLE;".into(), "id=[redacted:aws-access-key-id];"),
            ("ASIAIOSFODNN7EXAMPLE".into(), "[redacted:aws-access-key-id]"),
            ("xoxb-123456789012-abcdefghijkl".into(), "[redacted:slack-token]"),
            (format!("OPENAI_API_KEY=sk-proj-{body}"), "OPENAI_API_KEY=[redacted:api-key]"),
            (format!("sk-ant-api03-{body}-AA"), "[redacted:api-key]"),
            ("AIzaSyA1234567890abcdefghijklmnopqrstuv".into(), "[redacted:google-api-key]"),
            (
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P".into(),
                "[redacted:jwt]",
            ),
            ("Authorization: Bearer abc.def".into(), "Authorization: Bearer [redacted:authorization]"),
            ("'authorization': 'token abcdef'".into(), "'authorization': 'token [redacted:authorization]'"),
            ("git clone https://me:pa55@host/x.git".into(), "git clone https://[redacted:url-credentials]@host/x.git"),
            (
                "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nbnNz\n-----END OPENSSH PRIVATE KEY-----\nz\n".into(),
                "a\n[redacted:private-key]\nz\n",
            ),
        ] {
            assert_eq!(redacted(&[], &text), expected);
        }
    }

    #[test]
    fn leaves_everything_else() {
        for text in [
            "commit 9fceb02d0ae598e95dc970b74767f19372d61af8\n",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n",
            "a task-force-of-many-people-came\n",
            "sk-folding-cube-container-element\n",
            "ghp_short, AKIA, xoxb-, AIza, eyJ.a.b, eyJhbGciOiJIUzI1NiJ9\n",
            "https://host:8080/path and user@host:path and ssh://git@host/x\n",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
            "authorization: none\n",
            "\u{e4}\u{f6}\u{fc} \u{1f980}\n",
        ] {
            assert_eq!(redacted(&[], text), text);
        }
    }

    #[test]
    fn takes_out_given_values() {
        assert_eq!(
            redacted(&["hunter2", "hunter22"], "a hunter22 b hunter2\n"),
            "a [redacted:secret] b [redacted:secret]\n"
        );
        assert_eq!(
            redacted(&["first line\nsecond"], "x first line\nsecond y"),
            "x [redacted:secret]\n[redacted:secret] y"
        );
        assert_eq!(redacted(&["", "abc", "*.+("], "abc *.+( x"), "abc [redacted:secret] x");
        assert_eq!(redacted(&["\u{e4}\u{f6}\u{fc}"], "\u{e4}\u{f6}\u{fc}!"), "[redacted:secret]!");
    }

    #[test]
    fn finds_a_secret_anywhere_in_an_endless_line() {
        for before in [0, LONGEST_LINE - OVERLAP - 3, LONGEST_LINE - 3, 3 * LONGEST_LINE] {
            let text = format!("{}hunter2hunter2{}", "x".repeat(before), "y".repeat(2 * LONGEST_LINE));
            let (mut redactor, mut out) = (Redactor::new(&[b"hunter2hunter2".to_vec()]), Vec::new());
            for piece in text.as_bytes().chunks(1000) {
                redactor.push(piece, &mut out);
                assert!(redactor.pending.len() <= 2 * LONGEST_LINE);
            }
            redactor.finish(&mut out);
            assert_eq!(
                String::from_utf8(out).expect("redacting text gives text"),
                text.replace("hunter2hunter2", "[redacted:secret]")
            );
        }
    }

    #[test]
    fn a_key_without_an_end_does_not_swallow_the_rest() {
        let text = format!("-----BEGIN PRIVATE KEY-----\n{}\nTHE END\n", "QUJD\n".repeat(LONGEST_KEY / 4));
        let out = redacted(&[], &text);
        assert!(out.starts_with("[redacted:private-key]") && out.ends_with("THE END\n"));
    }
}
