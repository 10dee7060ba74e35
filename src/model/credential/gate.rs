//! Holds what is about to be stored or handed on against the shapes, and against values that are known to be secrets.

use std::fmt;
use std::io::{self, Read};

use super::allow::Allowed;
use super::rule::Level;
use super::values::Values;
use super::{search, without};

/// How much is looked at together.
const PIECE: usize = 256 << 10;

/// What is looked at again with what follows: more than any shape has.
const OVERLAP: usize = search::AFTER + (2 << 10);

/// The shape of a value that was given as a secret.
pub const GIVEN: &str = "secret-env";

/// What may not be stored.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    allowed: Vec<Allowed>,
    values: Values,
}

/// Where something stands that may not be stored. It never says what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret {
    /// The file, or what else people call it; credentials in the name itself are taken out.
    pub file: String,
    /// The line, from 1; none where the name has it.
    pub line: Option<u64>,
    /// The name of the shape.
    pub shape: &'static str,
}

/// `secret-found: outputs/report.txt:12 github-pat`
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "secret-found: {}", self.file)?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))?;
        write!(f, " {}", self.shape)
    }
}

impl std::error::Error for Secret {}

impl Gate {
    /// Returns one that lets these through.
    pub fn new(allowed: Vec<Allowed>) -> Self {
        Self { allowed, values: Values::default() }
    }

    /// Returns it with values that are secrets, whatever they look like.
    #[must_use]
    pub fn with(&self, values: &[Vec<u8>]) -> Self {
        Self { allowed: self.allowed.clone(), values: Values::new(values) }
    }

    /// Refuses bytes with a secret in them; `file` is what people call them.
    pub fn check(&self, file: &str, bytes: &[u8]) -> Result<(), Secret> {
        let mut scan = self.scan(file)?;
        scan.push(bytes)?;
        scan.finish()
    }

    /// Refuses what is read if there is a secret in it, without holding it in memory.
    pub fn check_reader(&self, file: &str, from: &mut dyn Read) -> io::Result<Result<(), Secret>> {
        let mut scan = match self.scan(file) {
            Ok(scan) => scan,
            Err(secret) => return Ok(Err(secret)),
        };
        let mut buffer = vec![0; PIECE];
        loop {
            let count = match from.read(&mut buffer) {
                Ok(0) => return Ok(scan.finish()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if let Err(secret) = scan.push(&buffer[..count]) {
                return Ok(Err(secret));
            }
        }
    }

    /// Begins to look at a file, whose name is refused like its content.
    pub fn scan<'g>(&'g self, file: &str) -> Result<Scan<'g>, Secret> {
        let shown = without(file).into_owned();
        if let Some((_, shape)) = self.first(file, file.as_bytes(), false) {
            let shown = if shape == GIVEN { "a file whose name has the secret".to_owned() } else { shown };
            return Err(Secret { file: shown, line: None, shape });
        }
        let overlap = OVERLAP.max(self.values.longest());
        Ok(Scan { gate: self, file: file.to_owned(), shown, pending: Vec::new(), line: 1, overlap })
    }

    /// Returns where the first secret begins, and its shape; of an open text, what reaches its end is left out.
    fn first(&self, file: &str, text: &[u8], open: bool) -> Option<(usize, &'static str)> {
        let mut found = Vec::new();
        let mut let_through = Vec::new();
        let mut sort = |at: std::ops::Range<usize>, shape: &'static str| {
            let allowed = self.allowed.iter().any(|allowed| allowed.lets(shape, file));
            if allowed { let_through.push(at) } else { found.push((at, shape)) }
        };
        self.values.find(text).filter(|at| !(open && at.end == text.len())).for_each(|at| sort(at, GIVEN));
        search::look(text, Level::Sure, (Some(file), open), &mut |at, rule| sort(at, rule.name.as_str()));
        // What is let through by one name is not held up by another.
        found.retain(|(at, shape)| {
            *shape == GIVEN || !let_through.iter().any(|other| at.start < other.end && other.start < at.end)
        });
        found.into_iter().map(|(at, shape)| (at.start, shape)).min()
    }
}

/// A file that is being looked at, piece by piece.
pub struct Scan<'g> {
    gate: &'g Gate,
    file: String,
    shown: String,
    pending: Vec<u8>,
    /// The line that the pending bytes begin in.
    line: u64,
    overlap: usize,
}

impl Scan<'_> {
    /// Takes in more of the file.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Secret> {
        for piece in bytes.chunks(PIECE) {
            self.pending.extend_from_slice(piece);
            if self.pending.len() >= PIECE + self.overlap {
                self.look(true)?;
                self.drop(self.pending.len() - self.overlap);
            }
        }
        Ok(())
    }

    /// Says that the next bytes stand in this line, apart from those before.
    pub fn at_line(&mut self, line: u64) -> Result<(), Secret> {
        self.look(false)?;
        self.pending.clear();
        self.line = line;
        Ok(())
    }

    /// Takes the end of the file.
    pub fn finish(mut self) -> Result<(), Secret> {
        self.look(false)
    }

    fn look(&mut self, open: bool) -> Result<(), Secret> {
        let Some((at, shape)) = self.gate.first(&self.file, &self.pending, open) else { return Ok(()) };
        self.drop(at);
        Err(Secret { file: self.shown.clone(), line: Some(self.line), shape })
    }

    fn drop(&mut self, upto: usize) {
        self.line += self.pending[..upto].split(|byte| *byte == b'\n').skip(1).count() as u64;
        self.pending.drain(..upto);
    }
}
