//! Parses paths as git quotes them, with escapes for special bytes. Pure.

use std::fmt::Write as _;

use gix::bstr::{BStr, BString, ByteSlice as _};

/// Returns the unquoted path.
pub fn unquoted(text: &[u8]) -> BString {
    match read(text) {
        Some((path, [])) => path,
        _ => text.into(),
    }
}

/// Quotes a path as git does with `core.quotePath=false`: only if it is not UTF-8 or contains a
/// control character, a quote or a backslash.
pub fn quoted(path: &BStr) -> String {
    if let Ok(text) = path.to_str()
        && path.iter().all(|byte| *byte >= b' ' && !matches!(byte, b'"' | b'\\' | 0x7f))
    {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for byte in path.iter() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            byte => write!(quoted, "\\{byte:03o}").expect("writing to a string does not fail"),
        }
    }
    quoted.push('"');
    quoted
}

/// Parses a quoted path at the start of a text. Returns it and the rest.
pub fn read(text: &[u8]) -> Option<(BString, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut path = BString::default();
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((path, rest)),
            b'\\' => {
                let (escaped, tail) = rest.split_first()?;
                rest = tail;
                path.push(match escaped {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => *escaped,
                    b'0'..=b'3' => {
                        let (digits, remaining) = rest.split_at_checked(2)?;
                        rest = remaining;
                        octal([*escaped, digits[0], digits[1]])?
                    }
                    _ => return None,
                });
            }
            plain => path.push(*plain),
        }
    }
}

fn octal(digits: [u8; 3]) -> Option<u8> {
    let [a, b, c] = digits.map(|digit| matches!(digit, b'0'..=b'7').then(|| u16::from(digit - b'0')));
    u8::try_from(a? * 64 + b? * 8 + c?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_and_what_is_none_stays() {
        for (written, meant) in [
            (r"plain name", "plain name"),
            (r#""a\tb\\\"""#, "a\tb\\\""),
            (r#""\303\274""#, "ü"),
            (r#""open"#, r#""open"#),
            (r#""a" b"#, r#""a" b"#),
            (r#""\9""#, r#""\9""#),
        ] {
            assert_eq!(unquoted(written.as_bytes()), meant, "{written}");
        }
        assert_eq!(read(br#""a" rest"#), Some(("a".into(), &b" rest"[..])));
    }
}
