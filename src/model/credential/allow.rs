//! Exceptions: `handoff.secrets.allow`.

use std::str::FromStr;

/// An exception: a shape, optionally limited to a path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    shape: String,
    path: Option<String>,
}

impl Allowed {
    /// Returns true if it allows a shape in a file.
    pub fn lets(&self, shape: &str, path: &str) -> bool {
        self.shape == shape && self.path.as_deref().is_none_or(|pattern| is_like(path.as_bytes(), pattern.as_bytes()))
    }
}

impl FromStr for Allowed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (shape, path) = text.split_once(':').map_or((text, None), |(shape, path)| (shape, Some(path)));
        let is_name = !shape.is_empty() && shape.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !is_name || path.is_some_and(str::is_empty) {
            return Err("is no shape such as `github-pat`, nor one with a path, such as `github-pat:tests/*`");
        }
        Ok(Self { shape: shape.to_owned(), path: path.map(str::to_owned) })
    }
}

/// Matches a path with a pattern: `*` matches anything, `?` one byte.
fn is_like(path: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < path.len() {
        match pattern.get(of) {
            Some(b'*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(byte) if *byte == b'?' || *byte == path[at] => (at, of) = (at + 1, of + 1),
            _ => match &mut star {
                Some((begun, position)) => {
                    *position += 1;
                    (at, of) = (*position, *begun + 1);
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|byte| *byte == b'*')
}
