//! Finds the line numbers and items of problems.

use super::{JsonPath, MAX_DEPTH};
use crate::model::printable::beginning;
use crate::model::problem::Problem;

/// The maximum length of a quoted id, in bytes; valid ones are shorter.
const MAX_ID: usize = 256;

/// The path prefix of problems outside the plan's file: in the queue's rules.
const ELSEWHERE: &str = "queue.";

/// Finds the line and item of each problem. A missing value has the line of its parent. An invalid
/// document is read as far as possible.
pub(crate) fn locate(bytes: &[u8], problems: &mut [Problem]) {
    let unlocated: Vec<&mut Problem> = problems
        .iter_mut()
        .filter(|problem| !problem.path.is_empty() && !problem.path.starts_with(ELSEWHERE))
        .collect();
    if !unlocated.is_empty() {
        let mut scan = Scan { bytes, at: 0, line: 1, unlocated };
        let _ = scan.value(&JsonPath::root(), 1, 0);
    }
}

/// A walk over the text of a document that skips values without problems.
struct Scan<'s> {
    bytes: &'s [u8],
    at: usize,
    line: usize,
    unlocated: Vec<&'s mut Problem>,
}

impl Scan<'_> {
    /// Reads the value at a path on this line. Returns `None` at the end of the readable text.
    fn value(&mut self, path: &JsonPath, line: usize, depth: usize) -> Option<()> {
        self.space();
        let (mut is_wanted, name) = (false, path.to_string());
        for problem in self.unlocated.iter_mut().filter(|problem| leads_to(&name, &problem.path)) {
            is_wanted = true;
            if !name.is_empty() {
                problem.line = Some(line);
            }
        }
        match self.peek()? {
            b'{' if is_wanted && depth < MAX_DEPTH => self.object(path, depth),
            b'[' if is_wanted && depth < MAX_DEPTH => self.array(path, depth),
            _ => self.skip(),
        }
    }

    fn object(&mut self, path: &JsonPath, depth: usize) -> Option<()> {
        self.at += 1;
        loop {
            self.space();
            match self.peek()? {
                b'}' => break self.at += 1,
                b',' => self.at += 1,
                _ => {
                    let (line, key) = (self.line, self.string()?);
                    self.space();
                    self.at += usize::from(self.peek()? == b':');
                    self.space();
                    if key == "id" && self.peek()? == b'"' {
                        let (at, start_line) = (self.at, self.line);
                        let id = self.string()?;
                        self.name(path, &id);
                        (self.at, self.line) = (at, start_line);
                    }
                    self.value(&path.key(&key), line, depth + 1)?;
                }
            }
        }
        Some(())
    }

    fn array(&mut self, path: &JsonPath, depth: usize) -> Option<()> {
        self.at += 1;
        let mut index = 0;
        loop {
            self.space();
            match self.peek()? {
                b']' => break self.at += 1,
                b',' => self.at += 1,
                _ => {
                    self.value(&path.index(index), self.line, depth + 1)?;
                    index += 1;
                }
            }
        }
        Some(())
    }

    /// Records the id of an item for its problems.
    fn name(&mut self, path: &JsonPath, id: &str) {
        let path = path.to_string();
        if path.starts_with("items[") && path.ends_with(']') && !path.contains('.') {
            for problem in &mut self.unlocated {
                if leads_to(&path, &problem.path) {
                    problem.item = Some(beginning(id, MAX_ID));
                }
            }
        }
    }

    /// Skips a value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => drop(self.string()?),
                b'{' | b'[' => (depth, self.at) = (depth + 1, self.at + 1),
                // The end of the parent is not part of it.
                b'}' | b']' | b',' if depth == 0 => return Some(()),
                b'}' | b']' => (depth, self.at) = (depth - 1, self.at + 1),
                b',' | b':' => self.at += 1,
                byte if byte.is_ascii_whitespace() => self.space(),
                _ => self.at += 1,
            }
            if depth == 0 && self.peek().is_none_or(|byte| matches!(byte, b'}' | b']' | b',')) {
                return Some(());
            }
        }
    }

    /// Reads a string.
    fn string(&mut self) -> Option<String> {
        let begin = self.at;
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b'\\' => self.at += 2,
                b'"' => break self.at += 1,
                byte => {
                    self.line += usize::from(byte == b'\n');
                    self.at += 1;
                }
            }
        }
        serde_json::from_slice(self.bytes.get(begin..self.at)?).ok()
    }

    fn space(&mut self) {
        while let Some(byte) = self.peek().filter(u8::is_ascii_whitespace) {
            self.line += usize::from(byte == b'\n');
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

/// Returns true if a path is that of a value or its parent.
fn leads_to(path: &str, place: &str) -> bool {
    place.strip_prefix(path).is_some_and(|rest| path.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::problem::Code;

    fn located(text: &str, path: &JsonPath) -> (Option<String>, Option<usize>) {
        let mut problems = [Problem::new(Code::WrongType, path, "x")];
        locate(text.as_bytes(), &mut problems);
        let [problem] = problems;
        (problem.item, problem.line)
    }

    #[test]
    fn a_problem_has_the_line_of_its_value_and_the_id_of_its_item() {
        let text = "{\n \"id\": \"r\",\n \"x\": [1, {\"a\": \"}]\\\"\"}],\n \"items\": [\n  {\"id\": \"a\"},\n  {\n   \"needs\": {\"odd key\":\n{}},\n   \"id\": \"b\"}]}";
        let item = JsonPath::root().key("items").index(1);
        let b = Some("b".to_owned());
        assert_eq!(located(text, &item), (b.clone(), Some(6)));
        assert_eq!(located(text, &item.key("needs").key("odd key")), (b.clone(), Some(7)));
        // A missing value has no line; its item does.
        assert_eq!(located(text, &item.key("executor")), (b, Some(6)));
        assert_eq!(located(text, &JsonPath::root().key("items").index(0).key("id")), (Some("a".to_owned()), Some(5)));
        assert_eq!(located(text, &JsonPath::root().key("x").index(1)), (None, Some(3)));
        assert_eq!(located(text, &JsonPath::root()), (None, None));
        assert_eq!(located(text, &JsonPath::root().key("queue").key("rules")), (None, None));
        assert_eq!(located("{\"items\": [", &item), (None, Some(1)));
    }
}
