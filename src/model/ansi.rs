//! Removes terminal control sequences (ECMA-48) completely from the output of other programs.

/// Removes control sequences: CSI, OSC, DCS and other strings, character sets and shorter ones.
///
/// An incomplete sequence ends with its line, so that no later text is lost.
pub fn without(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => escape(&mut letters),
            '\u{9b}' => control(&mut letters),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => string(&mut letters),
            letter => clean.push(letter),
        }
    }
    clean
}

type Letters<'t> = std::iter::Peekable<std::str::Chars<'t>>;

/// Skips the bytes after an ESC.
fn escape(letters: &mut Letters<'_>) {
    match letters.peek() {
        Some('[') => {
            letters.next();
            control(letters);
        }
        Some('P' | 'X' | ']' | '^' | '_') => {
            letters.next();
            string(letters);
        }
        // Intermediate bytes that select a character set, and the final byte.
        Some(' '..='/') => {
            while letters.next_if(|letter| matches!(letter, ' '..='/')).is_some() {}
            letters.next_if(|letter| matches!(letter, '0'..='~'));
        }
        Some('0'..='~') => drop(letters.next()),
        _ => {}
    }
}

/// Skips a control sequence after its introducer: parameters, intermediates, one final byte.
fn control(letters: &mut Letters<'_>) {
    while letters.next_if(|letter| matches!(letter, '0'..='?')).is_some() {}
    while letters.next_if(|letter| matches!(letter, ' '..='/')).is_some() {}
    letters.next_if(|letter| matches!(letter, '@'..='~'));
}

/// Skips a control string up to its terminator or the end of the line.
fn string(letters: &mut Letters<'_>) {
    while let Some(letter) = letters.next_if(|letter| !matches!(letter, '\n' | '\r')) {
        match letter {
            '\x07' | '\u{9c}' | '\x18' | '\x1a' => return,
            '\x1b' => {
                // Any other sequence ends the string and begins.
                match letters.peek() {
                    Some('\\') => drop(letters.next()),
                    _ => escape(letters),
                }
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_whole() {
        for (text, clean) in [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b[1;38;5;196mbold\x1b[m", "bold"),
            ("\x1b[?25l\x1b[2K\x1b[1Gline\x1b[?25h", "line"),
            ("\x1b[4:3mcurly\x1b[0 q", "curly"),
            ("\u{9b}31mred", "red"),
            ("\x1b]0;a title\x07text", "text"),
            ("\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\u{9d}0;a title\u{9c}text", "text"),
            ("\x1bPq#0;2;0;0;0\x1b\\picture", "picture"),
            ("\x1b_hidden\x1b\\\x1b^private\x1b\\\x1bXstring\x1b\\seen", "seen"),
            ("\x1b(B\x1b)0\x1b%Gset\x1b#8", "set"),
            ("\x1b7\x1b8\x1bc\x1b=\x1b>\x1bMshort", "short"),
            ("\x1b]0;left open\x1b[31mred", "red"),
            ("\x1b]0;left open\nnext line", "\nnext line"),
            ("\x1b[31", ""),
            ("\x1b[31\nnext", "\nnext"),
            ("ends\x1b", "ends"),
            ("[0m and (B are text", "[0m and (B are text"),
            ("ä\x1b[1mö\x1b[0mü\ttab\r\n", "äöü\ttab\r\n"),
        ] {
            assert_eq!(without(text), clean, "{text:?}");
        }
    }
}
