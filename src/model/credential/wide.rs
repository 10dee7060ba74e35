//! Reads text in UTF-16 as the search reads ASCII.

use std::ops::Range;

/// The fewest characters that count as text in UTF-16.
const FEWEST: usize = 16;

/// The ASCII characters of the parts of a text that are in UTF-16, in either byte order.
#[derive(Default)]
pub(super) struct Wide {
    pub(super) text: Vec<u8>,
    /// Where each part begins, in this text and in the original one.
    parts: Vec<(usize, usize)>,
}

impl Wide {
    /// Finds the parts: a byte between two NULs, again and again.
    pub(super) fn find(text: &[u8]) -> Self {
        let mut wide = Self::default();
        let mut at = 0;
        while let Some(nul) = text[at..].iter().position(|byte| *byte == 0) {
            // The first character may come before its first NUL.
            let start = (at + nul).saturating_sub(1).max(at);
            let start = if text[start] == 0 { start + 1 } else { start };
            let count = text[start..].chunks(2).take_while(|pair| is_wide(pair)).count();
            // In one byte order the last character has no NUL behind it.
            let last = text.get(start + 2 * count).is_some_and(|byte| matches!(byte, 1..=127));
            if count >= FEWEST {
                wide.parts.push((wide.text.len(), start));
                wide.text.extend(text[start..].iter().step_by(2).take(count + usize::from(last)));
                // Parts are apart.
                wide.text.push(0);
            }
            at = (start + 2 * count).max(at + nul + 1).min(text.len());
        }
        wide
    }

    /// Returns the place in the original text.
    pub(super) fn original(&self, at: Range<usize>) -> Range<usize> {
        let nth = self.parts.partition_point(|(start, _)| *start <= at.start).saturating_sub(1);
        let (start, original) = self.parts[nth];
        original + 2 * (at.start - start)..original + 2 * (at.end - start) - 1
    }
}

/// Returns true for an ASCII character and its NUL.
fn is_wide(pair: &[u8]) -> bool {
    matches!(pair, [1..=127, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders_are_read_and_places_are_kept() {
        let word = "a word of some length";
        let little: Vec<u8> = word.bytes().flat_map(|byte| [byte, 0]).collect();
        let big: Vec<u8> = word.bytes().flat_map(|byte| [0, byte]).collect();
        for (before, wide) in
            [(&b"\xff\xfe"[..], &little), (b"\xfe\xff", &big), (b"plain\n\0\0\0", &little), (b"", &big)]
        {
            let text = [before, wide, &b"\xff end"[..]].concat();
            let found = Wide::find(&text);
            assert_eq!(found.text, [word.as_bytes(), b"\0"].concat(), "{text:?}");
            let place = found.original(2..6);
            let letters: Vec<u8> = text[place].iter().copied().filter(|byte| *byte != 0).collect();
            assert_eq!(letters, b"word", "{text:?}");
        }
        for text in
            [&b"no NUL at all"[..], b"", b"\0", b"a\0b\0c", &[0; 64], b"\x7fELF\0\0\0\0names\0of\0symbols\0here\0"]
        {
            assert_eq!(Wide::find(text).text, b"", "{text:?}");
        }
    }
}
