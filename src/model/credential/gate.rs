//! Checks data before it is stored or shared, for shapes of credentials and known secret values.

use std::fmt;
use std::io::{self, Read};

use super::allow::Allowed;
use super::rule::Level;
use super::values::Values;
use super::{redact, search};

/// The size of a searched piece.
const PIECE: usize = 256 << 10;

/// The overlap between pieces: longer than any shape.
const OVERLAP: usize = search::AFTER + (2 << 10);

/// The shape name of a declared secret.
pub const GIVEN: &str = "secret-env";

/// The check for credentials.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    allowed: Vec<Allowed>,
    values: Values,
}

/// The place of a secret; never the secret itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret {
    /// The file or other name, without credentials.
    pub file: String,
    /// The line, from 1; `None` if the name has it.
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
    /// Creates a check with exceptions.
    pub fn new(allowed: Vec<Allowed>) -> Self {
        Self { allowed, values: Values::default() }
    }

    /// Adds secret values.
    #[must_use]
    pub fn with(&self, values: &[Vec<u8>]) -> Self {
        Self { allowed: self.allowed.clone(), values: Values::new(values) }
    }

    /// Fails if bytes have a secret; `file` names them.
    pub fn check(&self, file: &str, bytes: &[u8]) -> Result<(), Secret> {
        let mut scan = self.scan(file)?;
        scan.push(bytes)?;
        scan.finish()
    }

    /// Fails if a stream has a secret, without holding it in memory.
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

    /// Starts checking a file, including its name.
    pub fn scan<'g>(&'g self, file: &str) -> Result<Scan<'g>, Secret> {
        let label = redact(file).into_owned();
        if let Some((_, shape)) = self.first(file, file.as_bytes(), false) {
            let label = if shape == GIVEN { "a file whose name has the secret".to_owned() } else { label };
            return Err(Secret { file: label, line: None, shape });
        }
        let overlap = OVERLAP.max(self.values.longest());
        Ok(Scan { gate: self, file: file.to_owned(), label, pending: Vec::new(), line: 1, overlap })
    }

    /// Returns the position and shape of the first secret; in an open text, ignores a match at its
    /// end.
    fn first(&self, file: &str, text: &[u8], open: bool) -> Option<(usize, &'static str)> {
        let mut found = Vec::new();
        let mut let_through = Vec::new();
        let mut sort = |at: std::ops::Range<usize>, shape: &'static str| {
            let allowed = self.allowed.iter().any(|allowed| allowed.lets(shape, file));
            if allowed { let_through.push(at) } else { found.push((at, shape)) }
        };
        self.values.find(text).filter(|at| !(open && at.end == text.len())).for_each(|at| sort(at, GIVEN));
        search::look(text, Level::Sure, Some(file), open, &mut |at, rule| sort(at, rule.name.as_str()));
        // An exception for one shape does not hide a match of another.
        found.retain(|(at, shape)| {
            *shape == GIVEN || !let_through.iter().any(|other| at.start < other.end && other.start < at.end)
        });
        found.into_iter().map(|(at, shape)| (at.start, shape)).min()
    }
}

/// A file, checked in pieces.
pub struct Scan<'g> {
    gate: &'g Gate,
    file: String,
    label: String,
    pending: Vec<u8>,
    /// The line number of the pending bytes.
    line: u64,
    overlap: usize,
}

impl Scan<'_> {
    /// Reads the next bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Secret> {
        for piece in bytes.chunks(PIECE) {
            self.pending.extend_from_slice(piece);
            if self.pending.len() >= PIECE + self.overlap {
                self.check_buffer(true)?;
                self.drop(self.pending.len() - self.overlap);
            }
        }
        Ok(())
    }

    /// Starts a separate line with this number.
    pub fn at_line(&mut self, line: u64) -> Result<(), Secret> {
        self.check_buffer(false)?;
        self.pending.clear();
        self.line = line;
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(), Secret> {
        self.check_buffer(false)
    }

    fn check_buffer(&mut self, open: bool) -> Result<(), Secret> {
        let Some((at, shape)) = self.gate.first(&self.file, &self.pending, open) else { return Ok(()) };
        self.drop(at);
        Err(Secret { file: self.label.clone(), line: Some(self.line), shape })
    }

    fn drop(&mut self, upto: usize) {
        self.line += self.pending[..upto].split(|byte| *byte == b'\n').skip(1).count() as u64;
        self.pending.drain(..upto);
    }
}
