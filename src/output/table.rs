//! Tables of text.

pub(crate) mod wrap;

use git_handoff::model::printable::{self, Color, Painted};
use git_handoff::model::time::Moment;

use super::Output;

/// The maximum width of an aligned cell; a longer one does not widen the column.
const WIDEST: usize = 200;

/// The maximum number of characters of a cell, which only free text can exceed.
const LONGEST: usize = 2048;

/// A cell: words, each with an optional colour.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell(Vec<(String, Option<Color>)>);

impl Cell {
    /// Adds words with an optional colour.
    #[must_use]
    pub(crate) fn and(mut self, words: impl Into<String>, color: Option<Color>) -> Self {
        self.0.push((words.into(), color));
        self
    }

    /// Returns the printable form.
    fn printable(&self) -> Self {
        let (mut cell, mut left) = (Self::default(), LONGEST);
        for (words, color) in &self.0 {
            let words = printable::line(words).replace('\t', " ");
            let letters = words.chars().count();
            cell = cell.and(printable::cut_to(words, left), *color);
            if letters > left {
                break;
            }
            left -= letters;
        }
        cell
    }

    /// Returns the width without colours.
    fn width(&self) -> usize {
        self.0.iter().map(|(words, _)| console::measure_text_width(words)).sum()
    }

    /// Adds spaces up to a width.
    #[must_use]
    pub(crate) fn padded(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.and(" ".repeat(missing), None)
    }

    /// Adds the words of another cell.
    #[must_use]
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Removes trailing spaces.
    fn trimmed(mut self) -> Self {
        while let Some((words, _)) = self.0.last_mut() {
            words.truncate(words.trim_end().len());
            if !words.is_empty() {
                break;
            }
            self.0.pop();
        }
        self
    }

    /// Returns the cell as a line.
    pub(crate) fn painted(&self, color: bool) -> Painted {
        self.0.iter().fold(Painted::default(), |line, (words, of)| line.painted(words, of.filter(|_| color)))
    }
}

impl From<String> for Cell {
    fn from(words: String) -> Self {
        Self::default().and(words, None)
    }
}

impl From<&str> for Cell {
    fn from(words: &str) -> Self {
        Self::from(words.to_owned())
    }
}

/// Returns the printable form of a cell, cut to a width with `…`.
pub(crate) fn clip(cell: &Cell, width: usize) -> Cell {
    let cell = cell.printable();
    if cell.width() <= width {
        return cell;
    }
    let (mut clipped, mut left) = (Cell::default(), width);
    for (words, color) in cell.0 {
        let wide = console::measure_text_width(&words);
        // The mark of the cut needs a column of its own if something follows.
        if wide < left {
            clipped = clipped.and(words, color);
            left -= wide;
            continue;
        }
        let words = format!("{words}…");
        return clipped.and(console::truncate_str(&words, left, "…"), color);
    }
    clipped
}

/// Formats rows with columns two spaces apart. The last column is not padded.
pub(crate) fn lines(rows: &[Vec<String>]) -> Vec<String> {
    painted(&plain(rows), false).into_iter().map(String::from).collect()
}

/// Converts texts to cells without colour.
pub(crate) fn plain(rows: &[Vec<String>]) -> Vec<Vec<Cell>> {
    rows.iter().map(|row| row.iter().map(|cell| Cell::from(cell.as_str())).collect()).collect()
}

/// Formats rows as [`lines`] does, optionally in colour.
pub(crate) fn painted(rows: &[Vec<Cell>], color: bool) -> Vec<Painted> {
    aligned(rows).0.iter().map(|line| line.painted(color)).collect()
}

/// Formats rows; also returns the indentation of the last column.
fn aligned(rows: &[Vec<Cell>]) -> (Vec<Cell>, usize) {
    let rows: Vec<Vec<Cell>> = rows.iter().map(|row| row.iter().map(Cell::printable).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let widths = rows.iter().filter_map(|row| row.get(column)).map(Cell::width);
            widths.filter(|width| *width <= WIDEST).max().unwrap_or(0)
        })
        .collect();
    let indent = widths.iter().rev().skip(1).map(|before| before + 2).sum();
    (
        rows.iter()
            .map(|row| {
                let mut line = Cell::default();
                for (at, (cell, column_width)) in row.iter().zip(&widths).enumerate() {
                    line.0.extend((at > 0).then(|| ("  ".to_owned(), None)));
                    line.0.extend(cell.0.iter().cloned());
                    line = line.and(" ".repeat(column_width.saturating_sub(cell.width())), None);
                }
                line.trimmed()
            })
            .collect(),
        indent,
    )
}

/// Prints rows; wraps long lines between words on a terminal.
pub(crate) fn print(rows: &[Vec<Cell>], output: &mut Output) {
    let width = output.width();
    let (lines, indent) = aligned(rows);
    for line in lines {
        let broken = width.map_or_else(|| vec![line.clone()], |width| wrap::lines(&line, width, indent));
        broken.iter().for_each(|part| output.line(part.painted(output.color)));
    }
}

/// Prints rows without colour.
pub(crate) fn print_plain(rows: &[Vec<String>], output: &mut Output) {
    print(&plain(rows), output);
}

/// Formats a time to the minute, in UTC.
pub(crate) fn minute(moment: Moment) -> String {
    let text = moment.to_string();
    text.split_at_checked("2026-06-04T02:00".len()).map_or(text.clone(), |(minute, _)| minute.replace('T', " ") + "Z")
}

/// Formats a number of things, with a plural `s`.
pub(crate) fn many(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Returns the row of a field below a heading.
pub(crate) fn field(name: &str, value: String) -> Vec<String> {
    vec![format!("  {name}"), value]
}

/// Formats a number of bytes.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// Formats milliseconds.
pub(crate) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{}.{}s", millis / 1000, millis % 1000 / 100),
        _ => format!("{}m{:02}s", millis / 60_000, millis / 1000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_cell_makes_no_other_line_long() {
        let printed = lines(&[row("a"), row(&"x".repeat(WIDEST)), row(&"y".repeat(1 << 20))]);
        assert_eq!(printed[0], format!("a{}b", " ".repeat(WIDEST + 1)));
        assert_eq!(printed[2], format!("{}…  b", "y".repeat(LONGEST)));
    }

    fn row(first: &str) -> Vec<String> {
        vec![first.to_owned(), "b".to_owned()]
    }

    #[test]
    fn colours_move_no_column_and_foreign_words_end_none() {
        let (green, red) = (Some(Color::Green), Some(Color::Red));
        let printed = |color| {
            let rows = [
                vec![Cell::default().and("✓", green).and(" a", None), Cell::default().and("done", green), "".into()],
                vec![
                    Cell::default().and("✗", red).and(" bcd", None),
                    Cell::default().and("fai\x1b[0mled", red),
                    "x ".into(),
                ],
            ];
            painted(&rows, color).into_iter().map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(printed(false), ["✓ a    done", "✗ bcd  fai\u{fffd}[0mled  x"]);
        let first = "\x1b[32m✓\x1b[0m a    \x1b[32mdone\x1b[0m";
        assert_eq!(printed(true), [first, "\x1b[31m✗\x1b[0m bcd  \x1b[31mfai\u{fffd}[0mled\x1b[0m  x"]);
    }

    #[test]
    fn a_cell_of_several_words_is_cut_as_one() {
        let cell = Cell::default().and("x".repeat(LONGEST - 1), None).and("yz", Some(Color::Red)).and("more", None);
        assert_eq!(String::from(painted(&[vec![cell]], false).remove(0)), format!("{}y…", "x".repeat(LONGEST - 1)));
    }
}
