//! Searches the added lines of a patch. Removed and context lines are in the repository already.

use super::gate::{Gate, Scan, Secret};

/// The maximum length of a header line to read.
const LONGEST_HEADER: usize = 64 << 10;

/// A git patch, searched in pieces.
pub struct PatchScan<'g> {
    gate: &'g Gate,
    scan: Option<Scan<'g>>,
    header: Vec<u8>,
    /// The remaining old and new lines of the hunk.
    left: (u64, u64),
    /// The next line of the new file, and the one after the last added line.
    next: u64,
    follows: u64,
    /// The kind of the present line.
    at: Line,
    /// Whether it has something only git can decode.
    pub packed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Begins,
    Header,
    Added,
    Other,
}

impl<'g> PatchScan<'g> {
    /// Starts searching a patch.
    pub fn new(gate: &'g Gate) -> Self {
        let (header, at) = (Vec::new(), Line::Begins);
        Self { gate, scan: None, header, left: (0, 0), next: 0, follows: 0, at, packed: false }
    }

    /// Reads the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), Secret> {
        while let Some(first) = bytes.first() {
            if self.at == Line::Begins {
                self.at = self.begin(*first)?;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            match self.at {
                Line::Added => {
                    let text = &line[usize::from(self.header.is_empty())..];
                    self.scan.as_mut().map_or(Ok(()), |scan| scan.push(text))?;
                    // The marker at the start of the line was read.
                    self.header = vec![b'+'];
                }
                Line::Header if self.header.len() < LONGEST_HEADER => self.header.extend_from_slice(line),
                _ => {}
            }
            if end.is_some() {
                self.end()?;
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Ends the patch.
    pub fn finish(mut self) -> Result<(), Secret> {
        if self.at == Line::Header {
            self.end()?;
        }
        self.scan.map_or(Ok(()), Scan::finish)
    }

    fn begin(&mut self, first: u8) -> Result<Line, Secret> {
        if self.left == (0, 0) {
            return Ok(Line::Header);
        }
        let (old, new) = (&mut self.left.0, &mut self.left.1);
        match first {
            b'+' => {
                *new = new.saturating_sub(1);
                if self.follows != self.next
                    && let Some(scan) = &mut self.scan
                {
                    scan.at_line(self.next)?;
                }
                self.next += 1;
                self.follows = self.next;
                return Ok(Line::Added);
            }
            b'-' => *old = old.saturating_sub(1),
            b'\\' => {}
            _ => {
                (*old, *new) = (old.saturating_sub(1), new.saturating_sub(1));
                self.next += 1;
            }
        }
        Ok(Line::Other)
    }

    fn end(&mut self) -> Result<(), Secret> {
        let header = std::mem::take(&mut self.header);
        if std::mem::replace(&mut self.at, Line::Begins) != Line::Header {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&header);
        let line = line.trim_end_matches('\n');
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.open(names.rsplit_once(" b/").map_or(names, |(_, name)| name))?;
        } else if let Some(name) = line.strip_prefix("+++ ").filter(|name| *name != "/dev/null") {
            let name = name.trim_end_matches('\t').trim_matches('"');
            self.open(name.strip_prefix("b/").unwrap_or(name))?;
        } else if let Some((old, new)) = line.strip_prefix("@@ -").and_then(|hunk| hunk.split_once(" +")) {
            let (_, old) = range(old);
            let (at, new) = range(new);
            (self.left, self.next, self.follows) = ((old, new), at, u64::MAX);
        } else if line == "GIT binary patch" {
            self.packed = true;
        }
        Ok(())
    }

    fn open(&mut self, file: &str) -> Result<(), Secret> {
        match self.scan.replace(self.gate.scan(file)?) {
            Some(before) => before.finish(),
            None => Ok(()),
        }
    }
}

/// Parses `7,2 @@ …` or `7 @@ …`: the start and length of a hunk.
fn range(text: &str) -> (u64, u64) {
    let text = text.split(' ').next().unwrap_or_default();
    let (at, count) = text.split_once(',').unwrap_or((text, "1"));
    (at.parse().unwrap_or(0), count.parse().unwrap_or(0))
}
