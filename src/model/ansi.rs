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
