//! Columns of text.

use git_handoff::model::printable;

/// The widest cell that others are lined up with: one that is longer stands out, and makes no other line long.
const WIDEST: usize = 200;

/// The most letters of a cell. No name and no path has as many; what somebody says of himself may.
const LONGEST: usize = 2048;

/// Returns rows as lines with columns two spaces apart, each cell as it may be printed; the last column is left as wide as it is.
pub(crate) fn lines(rows: &[Vec<String>]) -> Vec<String> {
    let cell = |cell: &String| printable::cut_to(printable::line(cell).replace('\t', " "), LONGEST);
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let widths = rows.iter().filter_map(|row| row.get(column)).map(|cell| console::measure_text_width(cell));
        widths.filter(|width| *width <= WIDEST).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| {
                let pad = width.saturating_sub(console::measure_text_width(cell));
                format!("{cell}{}", " ".repeat(pad))
            })
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Returns a number of things, whose word takes an `s`.
pub(crate) fn many(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Returns a number of bytes as people say it.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// Returns milliseconds as people say it.
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
        let row = |first: &str| vec![first.to_owned(), "b".to_owned()];
        let told = lines(&[row("a"), row(&"x".repeat(WIDEST)), row(&"y".repeat(1 << 20))]);
        assert_eq!(told[0], format!("a{}b", " ".repeat(WIDEST + 1)));
        assert_eq!(told[2], format!("{}…  b", "y".repeat(LONGEST)));
    }
}
