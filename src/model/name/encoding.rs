//! The encoding of names in refs and tree paths.

use std::fmt::Write as _;

/// Encodes a segment as a plain file name for git and every file system.
///
/// Encodes every byte outside `[A-Za-z0-9_.-]` as `%XX`. Also encodes a `.` that git refuses: at
/// the beginning or end, after a bare `.`, and before a final `lock` in any case. Distinct names
/// have distinct encodings.
pub fn encode_segment(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut encoded = String::with_capacity(bytes.len());
    for (at, &byte) in bytes.iter().enumerate() {
        let bare = match byte {
            b'.' => {
                let rest = &bytes[at + 1..];
                !(encoded.is_empty() || encoded.ends_with('.') || rest.is_empty() || rest.eq_ignore_ascii_case(b"lock"))
            }
            _ => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
        };
        if bare {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a string does not fail");
        }
    }
    encoded
}

/// Decodes a name, or returns `None` unless it encodes to exactly `segment`.
pub fn decode_segment(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let name = String::from_utf8(bytes).ok()?;
    (encode_segment(&name) == segment).then_some(name)
}
