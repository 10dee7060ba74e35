//! The one encoding of names in refs and tree paths.

use std::fmt::Write as _;

/// Encodes one segment so that git, and a checkout on any system, takes it for a plain file name.
///
/// Every byte outside `[A-Za-z0-9_.-]` becomes `%XX`. So does a `.` where git refuses it: at the
/// beginning, at the end, after another bare `.`, and before a final `lock` (in any letter case,
/// since a file system may fold it). No two names have the same encoding.
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

/// The name that `segment` encodes; `None` when nothing encodes to exactly that.
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
