//! Kinds of values: how each is parsed, and how the documentation describes it.

use std::path::PathBuf;
use std::time::Duration;

use super::{Error, Setting};
use crate::model::credential::allow::Allowed;
use crate::model::protected::pathspec_fault;

/// A kind of values, as the documentation describes it.
pub(super) trait Kind {
    /// Describes the allowed values in a few words.
    fn describe(&self) -> String;
}

/// A parser for values of a kind.
pub(super) trait Read<T>: Kind {
    /// Parses a value. The error says what the value is not.
    fn read(&self, setting: &Setting) -> Result<T, Error>;
}

/// Unchecked text, with its description.
pub(super) struct Text(pub(super) &'static str);

/// The path of a file or folder.
pub(super) struct File;

/// The name of one folder.
pub(super) struct Folder;

/// A path or a pattern of paths, relative to the top of the work tree and not leading out of it.
pub(super) struct Pattern;

/// A pathspec of git, from the top of the work tree.
pub(super) struct Pathspec;

/// A whole number from the first to the second, with git's suffixes.
pub(super) struct Number(pub(super) u64, pub(super) u64);

/// A number of bytes.
pub(super) struct Size;

/// A number of seconds.
pub(super) struct Seconds;

/// A duration in milliseconds from the first to the second, written with a unit.
pub(super) struct Span(pub(super) u64, pub(super) u64);

/// Yes or no.
pub(super) struct Boolean;

/// One of several words, each with its meaning.
pub(super) struct Choice<T: 'static>(pub(super) &'static [(&'static str, T)]);

/// One of two words, or a boolean that chooses between them.
pub(super) struct Either(pub(super) &'static str, pub(super) &'static str);

/// Words with white space between them.
pub(super) struct Words;

/// A kind of credential, optionally limited to a path pattern.
pub(super) struct Credential;

/// One environment variable.
pub(super) struct Variable;

impl Kind for Text {
    fn describe(&self) -> String {
        self.0.into()
    }
}

impl Read<String> for Text {
    fn read(&self, setting: &Setting) -> Result<String, Error> {
        Ok(setting.value.clone())
    }
}

impl Kind for File {
    fn describe(&self) -> String {
        "path".into()
    }
}

impl Read<PathBuf> for File {
    fn read(&self, setting: &Setting) -> Result<PathBuf, Error> {
        Ok(PathBuf::from(&setting.value))
    }
}

impl Kind for Folder {
    fn describe(&self) -> String {
        "name of one folder".into()
    }
}

impl Read<String> for Folder {
    fn read(&self, setting: &Setting) -> Result<String, Error> {
        let name = &setting.value;
        match crate::model::name::FilePath::parse(name) {
            Ok(_) if !name.contains('/') => Ok(name.clone()),
            _ => Err(Error::bad(setting, "is not the name of one folder")),
        }
    }
}

impl Kind for Pattern {
    fn describe(&self) -> String {
        "path or pattern".into()
    }
}

impl Read<String> for Pattern {
    fn read(&self, setting: &Setting) -> Result<String, Error> {
        let pattern = setting.value.trim_end_matches('/');
        match crate::model::name::FilePath::parse(pattern) {
            Ok(_) if !pattern.split('/').any(crate::model::name::is_dot_git) => Ok(pattern.to_owned()),
            _ => Err(Error::bad(setting, "is not a path or pattern below the top of the work tree")),
        }
    }
}

impl Kind for Pathspec {
    fn describe(&self) -> String {
        "pathspec".into()
    }
}

impl Read<String> for Pathspec {
    fn read(&self, setting: &Setting) -> Result<String, Error> {
        match pathspec_fault(&setting.value) {
            Some(fault) => Err(Error::bad(setting, fault)),
            None => Ok(setting.value.clone()),
        }
    }
}

impl Kind for Number {
    fn describe(&self) -> String {
        match *self {
            Self(0, u64::MAX) => "number".into(),
            Self(least, u64::MAX) => format!("number, {least} or more"),
            Self(least, most) => format!("number, {least} to {most}"),
        }
    }
}

impl<T: TryFrom<u64>> Read<T> for Number {
    fn read(&self, setting: &Setting) -> Result<T, Error> {
        let Self(least, most) = *self;
        let number = read_whole_number(setting)?;
        if !(least..=most).contains(&number) {
            return Err(match most {
                u64::MAX => Error::bad(setting, format!("is less than {least}")),
                _ => Error::bad(setting, format!("is not between {least} and {most}")),
            });
        }
        T::try_from(number).map_err(|_| Error::bad(setting, "is not a whole number"))
    }
}

impl Kind for Size {
    fn describe(&self) -> String {
        "bytes, or with `k`, `m`, `g`".into()
    }
}

impl Read<u64> for Size {
    fn read(&self, setting: &Setting) -> Result<u64, Error> {
        read_whole_number(setting)
    }
}

impl Kind for Seconds {
    fn describe(&self) -> String {
        "seconds".into()
    }
}

impl Read<u64> for Seconds {
    fn read(&self, setting: &Setting) -> Result<u64, Error> {
        read_whole_number(setting)
    }
}

impl Kind for Span {
    fn describe(&self) -> String {
        "duration, such as `200ms`, `5s` or `2m`".into()
    }
}

impl Read<Duration> for Span {
    fn read(&self, setting: &Setting) -> Result<Duration, Error> {
        let text = setting.value.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let unit = match &text[digits..] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(Error::bad(setting, "is no duration such as `200ms`, `5s` or `2m`")),
        };
        let millis = text[..digits].parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        match millis {
            Some(millis) if (self.0..=self.1).contains(&millis) => Ok(Duration::from_millis(millis)),
            _ => Err(Error::bad(setting, format!("is not a duration from {} ms to {} ms", self.0, self.1))),
        }
    }
}

impl Kind for Boolean {
    fn describe(&self) -> String {
        "boolean".into()
    }
}

impl Read<bool> for Boolean {
    fn read(&self, setting: &Setting) -> Result<bool, Error> {
        match setting.value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" | "" => Ok(false),
            _ => Err(Error::bad(setting, "is neither true nor false")),
        }
    }
}

impl<T> Kind for Choice<T> {
    fn describe(&self) -> String {
        let words: Vec<_> = self.0.iter().map(|(word, _)| format!("`{word}`")).collect();
        words.join(" or ")
    }
}

impl<T: Copy> Read<T> for Choice<T> {
    fn read(&self, setting: &Setting) -> Result<T, Error> {
        let chosen = self.0.iter().find(|(word, _)| *word == setting.value);
        chosen.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<_> = self.0.iter().map(|(word, _)| format!("`{word}`")).collect();
            Error::bad(setting, format!("is neither {}", words.join(" nor ")))
        })
    }
}

impl Kind for Either {
    fn describe(&self) -> String {
        format!("`{}` or `{}`, or a boolean", self.0, self.1)
    }
}

impl Read<bool> for Either {
    fn read(&self, setting: &Setting) -> Result<bool, Error> {
        let Self(no, yes) = *self;
        match setting.value.as_str() {
            word if word == no => Ok(false),
            word if word == yes => Ok(true),
            _ => Boolean.read(setting).map_err(|_| Error::bad(setting, format!("is neither `{no}` nor `{yes}`"))),
        }
    }
}

impl Kind for Words {
    fn describe(&self) -> String {
        "words; each setting adds some".into()
    }
}

impl Read<Vec<String>> for Words {
    fn read(&self, setting: &Setting) -> Result<Vec<String>, Error> {
        Ok(setting.value.split_whitespace().map(str::to_owned).collect())
    }
}

impl Kind for Credential {
    fn describe(&self) -> String {
        "`shape` or `shape:path`; each setting adds one".into()
    }
}

impl Read<Allowed> for Credential {
    fn read(&self, setting: &Setting) -> Result<Allowed, Error> {
        setting.value.parse().map_err(|why: &'static str| Error::bad(setting, why))
    }
}

impl Kind for Variable {
    fn describe(&self) -> String {
        "`NAME=value`; each setting adds one".into()
    }
}

impl Read<(String, String)> for Variable {
    fn read(&self, setting: &Setting) -> Result<(String, String), Error> {
        let pair = setting.value.split_once('=').ok_or_else(|| Error::bad(setting, "is not NAME=value"))?;
        Ok((pair.0.to_owned(), pair.1.to_owned()))
    }
}

/// Reads a whole number with git's suffixes `k`, `m`, `g`.
fn read_whole_number(setting: &Setting) -> Result<u64, Error> {
    let text = setting.value.trim().to_ascii_lowercase();
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g') => (&text[..text.len() - 1], 1 << 30),
        _ => (text.as_str(), 1u64),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    number.ok_or_else(|| Error::bad(setting, "is not a whole number"))
}
