//! The URIs of resources.
//!
//! A name is percent-encoded as in RFC 3986, so each resource that is listed has one URI.

use std::fmt::Write as _;

/// The beginning of every URI.
const SCHEME: &str = "handoff://";

/// The beginning of the URI of a run.
pub(super) const RUNS: &str = "handoff://run/";

/// The beginning of the URI of a document.
pub(super) const DOCUMENTS: &str = "handoff://document/";

/// The forms of a URI, for errors.
const FORMS: &str = "a URI here is handoff://runs, handoff://threads, handoff://run/RUN or handoff://document/RUN/NAME";

/// A resource, as a URI names it. Whether it exists is another question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// The list of runs.
    Runs,
    /// The list of threads.
    Threads,
    /// A run, by the name that tools accept.
    Run(String),
    /// A document, by its run and its name.
    Document { run: String, name: String },
}

impl Address {
    /// Parses a URI, or returns why it is none of this server.
    ///
    /// Encoding is required only where it changes the meaning: `%`, `?`, `#`, and a `/` within the
    /// name of a run.
    pub(super) fn parse(uri: &str) -> Result<Self, String> {
        let Some(path) = uri.strip_prefix(SCHEME) else {
            return Err(format!("its scheme is not served; {FORMS}"));
        };
        if let Some(sign) = path.chars().find(|sign| matches!(sign, '?' | '#')) {
            return Err(format!("it has a {sign:?}, which is %{:02X} in a name", u32::from(sign)));
        }
        match path.split_once('/') {
            None if path == "runs" => Ok(Self::Runs),
            None if path == "threads" => Ok(Self::Threads),
            Some(("run", run)) if run.contains('/') => {
                Err(format!("a run is one segment, and \"/\" in its name is %2F; {FORMS}"))
            }
            Some(("run", run)) if !run.is_empty() => Ok(Self::Run(decode(run)?)),
            Some(("document", rest)) => match rest.split_once('/') {
                Some((run, name)) if !run.is_empty() && !name.is_empty() => {
                    Ok(Self::Document { run: decode(run)?, name: decode(name)? })
                }
                _ => Err(format!("a document has a run and a name; {FORMS}")),
            },
            _ => Err(format!("it names no resource; {FORMS}")),
        }
    }

    /// Returns the URI.
    pub(super) fn uri(&self) -> String {
        match self {
            Self::Runs => format!("{SCHEME}runs"),
            Self::Threads => format!("{SCHEME}threads"),
            Self::Run(run) => format!("{RUNS}{}", encode(run)),
            Self::Document { run, name } => format!("{DOCUMENTS}{}/{}", encode(run), encode(name)),
        }
    }
}

/// Encodes every byte that is not unreserved in RFC 3986.
fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a string does not fail");
        }
    }
    encoded
}

/// Decodes a name.
fn decode(encoded: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let digits = digit().zip(digit()).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
            bytes.push(digits.ok_or("it has a \"%\" without two hexadecimal digits; \"%\" itself is %25")?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| "a name in it is not UTF-8 once it is decoded".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(run: &str, name: &str) -> Address {
        Address::Document { run: run.into(), name: name.into() }
    }

    #[test]
    fn an_address_has_one_uri_that_is_read_back() {
        for (address, uri) in [
            (Address::Runs, "handoff://runs"),
            (Address::Threads, "handoff://threads"),
            (Address::Run("r".into()), "handoff://run/r"),
            (Address::Run("origin/r".into()), "handoff://run/origin%2Fr"),
            (Address::Run("100% ü?".into()), "handoff://run/100%25%20%C3%BC%3F"),
            (document("r", "notes/a.md"), "handoff://document/r/notes%2Fa.md"),
            (document("origin/r", "a#b"), "handoff://document/origin%2Fr/a%23b"),
        ] {
            assert_eq!(address.uri(), uri);
            assert_eq!(Address::parse(uri), Ok(address));
        }
        assert_eq!(Address::parse("handoff://document/r/notes/ü.md"), Ok(document("r", "notes/ü.md")));
        // The rules for names refuse this one.
        assert_eq!(Address::parse("handoff://document/r/%2e%2e/x"), Ok(document("r", "../x")));
    }

    #[test]
    fn another_uri_is_refused_with_the_reason() {
        for (uri, why) in [
            ("", "scheme"),
            ("file:///etc/passwd", "scheme"),
            ("HANDOFF://runs", "scheme"),
            ("handoff:runs", "scheme"),
            ("handoff://", "names no resource"),
            ("handoff://runs/", "names no resource"),
            ("handoff://run", "names no resource"),
            ("handoff://run/", "names no resource"),
            ("handoff://thread/t", "names no resource"),
            ("handoff://run/r/a", "%2F"),
            ("handoff://run/r?x=1", "'?', which is %3F"),
            ("handoff://run/r#x", "'#', which is %23"),
            ("handoff://run/%", "two hexadecimal digits"),
            ("handoff://run/%4", "two hexadecimal digits"),
            ("handoff://run/%zz", "two hexadecimal digits"),
            ("handoff://run/%ff", "UTF-8"),
            ("handoff://document/r", "a run and a name"),
            ("handoff://document//x", "a run and a name"),
            ("handoff://document/r/", "a run and a name"),
        ] {
            let refused = Address::parse(uri).expect_err(uri);
            assert!(refused.contains(why), "{uri}: {refused}");
        }
    }
}
