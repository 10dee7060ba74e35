//! `git handoff graph`

use std::path::Path;

use git_handoff::model::name::RunId;
use git_handoff::model::printable::{Color, Painted};
use git_handoff::report::graph::text::plain;
use git_handoff::report::graph::tree::{self, Needs, Row};
use git_handoff::report::graph::{
    self, BOXES, Drawing, Node, Outline, Picture, count_statuses, dot, mermaid, svg, worst,
};
use git_handoff::repository::Repository;
use git_handoff::run::operate::submission::Wanted;
use git_handoff::run::query::{Target, View};

use super::table::{self, Cell};
use super::{Ending, Failure, Output, remote_read, status, validate};

/// The width of a line if the output does not go to a terminal.
const COLUMNS: usize = 80;

/// The maximum width of the lines before a mark; deeper rows show their depth instead.
const DEEPEST: usize = 30;

/// The maximum width of the column of statuses.
const STATUS: usize = 25;

/// The width that is left for the dependencies, if any are named.
const NEEDS: usize = 18;

/// Show the items of a run or a plan as a graph of what needs what
///
/// A row stands below what it needs: in the same column, or as a branch. Further needs are named.
/// With many items, similar ones share a row.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run, or the file of a plan, or - for a plan on standard input
    #[arg(value_name = "RUN|PLAN")]
    what: String,
    /// Print an SVG image
    #[arg(long, conflicts_with_all = ["dot", "mermaid"])]
    svg: bool,
    /// Print a graph for Graphviz
    #[arg(long, conflicts_with = "mermaid")]
    dot: bool,
    /// Print a Mermaid flowchart, as Markdown on many hosts shows it
    #[arg(long)]
    mermaid: bool,
    #[command(flatten)]
    pub(crate) offline: remote_read::Offline,
}

/// The run or the plan to draw.
struct Subject<'v> {
    id: RunId,
    /// The run, or `None` for a plan.
    view: Option<&'v View>,
    outline: Outline,
}

impl<'v> Subject<'v> {
    fn of_run(view: &'v View) -> Self {
        Self { id: view.run.clone(), outline: Outline::of_run(view), view: Some(view) }
    }
}

/// Prints the graph.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    if output.json && (arguments.svg || arguments.dot || arguments.mermaid) {
        return Err(Failure::usage("--json cannot be used with --svg, --dot or --mermaid".to_owned()));
    }
    let view: View;
    let mut remote = None;
    let subject = match Target::look_up(&repository.store, &arguments.what)? {
        Some(target) => {
            remote = remote_read::read(&target, repository, output)?;
            view = target.view(&repository.store)?;
            Subject::of_run(&view)
        }
        None if is_plan(&arguments.what) => match read_plan(Path::new(&arguments.what), repository, output)? {
            Some(subject) => subject,
            None => return Ok(Ending::Refused),
        },
        None => {
            return Err(Target::find(&repository.store, &arguments.what)
                .err()
                .map_or_else(Failure::bug, Failure::from));
        }
    };
    let state = subject.view.map(|known| &known.state);
    if arguments.mermaid {
        output.text(&mermaid::write(&subject.outline, state));
        return Ok(Ending::Done);
    }
    let picture = Picture::new(&subject.outline, BOXES);
    if output.json {
        output.value(&match state {
            Some(state) => Drawing::of_run(&subject.id, state, &subject.outline, &picture).with_remote(remote),
            None => Drawing::of_plan(&subject.id, &subject.outline, &picture),
        });
    } else if arguments.svg {
        output.text(&svg::write(subject.id.as_str(), &subject.outline, &picture, state));
    } else if arguments.dot {
        output.text(&dot::write(subject.id.as_str(), &subject.outline, &picture, state));
    } else {
        let width = output.width().unwrap_or(COLUMNS);
        lines(&subject, &picture, width, output.color).into_iter().for_each(|line| output.line(line));
        let age = remote_read::age(remote.as_ref(), repository.environment.clock.now());
        age.into_iter().for_each(|age| output.line(&age));
    }
    Ok(Ending::Done)
}

/// Returns true if an argument that names no run is meant as the file of a plan.
fn is_plan(what: &str) -> bool {
    what == "-" || Path::new(what).extension().is_some_and(|end| end == "json") || Path::new(what).is_file()
}

/// Reads a plan, or prints its problems and returns `None`.
fn read_plan(path: &Path, repository: &Repository, output: &mut Output) -> Result<Option<Subject<'static>>, Failure> {
    let bytes = validate::read_plan(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    match repository.validate(&bytes, Some(folder), &Wanted::default()) {
        Ok(valid) => {
            let (id, outline) = (valid.plan().id.clone(), Outline::of_plan(&valid));
            Ok(Some(Subject { id, view: None, outline }))
        }
        Err(problems) => {
            validate::report(output, Err(&problems));
            Ok(None)
        }
    }
}

/// Returns the graph of a run as lines.
pub(crate) fn of_run(view: &View, output: &Output) -> Vec<Painted> {
    let subject = Subject::of_run(view);
    let picture = Picture::new(&subject.outline, BOXES);
    lines(&subject, &picture, output.width().unwrap_or(COLUMNS), output.color)
}

/// Returns one line for the run, and one for each box.
fn lines(subject: &Subject<'_>, picture: &Picture, width: usize, color: bool) -> Vec<Painted> {
    let head = match subject.view {
        Some(view) => status::total(view),
        None => format!("{}: {}", subject.id, table::many(subject.outline.items.len(), "item")).into(),
    };
    let head = table::clip(&head, width).painted(color);
    let names: Vec<String> = picture.boxes.iter().map(|node| name(subject, node)).collect();
    let lines: Vec<Line> = tree::rows(picture).iter().map(|row| Line::new(subject, picture, &names, row)).collect();
    let columns = Columns::fitting(&lines, width);
    std::iter::once(head).chain(lines.iter().map(|line| columns.arrange(line, &names, color))).collect()
}

fn name(subject: &Subject<'_>, node: &Node) -> String {
    match &node.group {
        Some(group) => format!("{} ({})", plain(group), node.members.len()),
        None => plain(subject.outline.items[node.members[0]].id.as_str()),
    }
}

/// A row in parts.
struct Line {
    lines: String,
    name: String,
    standing: Standing,
    needs: Needs,
}

/// The status of a box as a row shows it.
struct Standing {
    mark: &'static str,
    words: String,
    /// The red and failed items of a group.
    bad: Vec<String>,
    color: Option<Color>,
}

impl Line {
    fn new(subject: &Subject<'_>, picture: &Picture, names: &[String], row: &Row) -> Self {
        let node = &picture.boxes[row.node];
        let depth = row.lines.chars().count();
        let lines =
            if depth > DEEPEST { format!("{:>DEEPEST$} ", format!("[{}]", depth / 3)) } else { row.lines.clone() };
        let standing = Standing::for_node(subject, node);
        Self { lines, name: names[row.node].clone(), standing, needs: row.needs.clone() }
    }

    fn needs_words(&self, names: &[String], width: usize) -> String {
        match &self.needs {
            Needs::Shown => String::new(),
            Needs::Branches(count) => format!("needs all {count} above"),
            Needs::Boxes(boxes) => {
                let needed: Vec<&str> = boxes.iter().map(|at| names[*at].as_str()).collect();
                list_names("needs ", &needed, width)
            }
        }
    }

    /// Returns the width of lines, mark and name.
    fn width(&self) -> usize {
        console::measure_text_width(&self.lines) + 2 + console::measure_text_width(&self.name)
    }
}

impl Standing {
    fn for_node(subject: &Subject<'_>, node: &Node) -> Self {
        let none = Self { mark: "·", words: String::new(), bad: Vec::new(), color: None };
        let Some(view) = subject.view else { return none };
        let Some(at) = worst(&view.state, &node.members) else { return none };
        let (word, color) = status::shaded(view, at);
        let mark = status::mark(view, at);
        if node.group.is_none() {
            return Self { mark, words: word, bad: Vec::new(), color };
        }
        let counts = count_statuses(&view.state, &node.members).into_iter();
        let counts: Vec<String> = counts.map(|(label, count)| format!("{count} {label}")).collect();
        let bad =
            node.members.iter().filter(|member| graph::Standing::read(&view.state, **member) >= graph::Standing::Red);
        let bad = bad.map(|member| plain(subject.outline.items[*member].id.as_str())).collect();
        Self { mark, words: counts.join(", "), bad, color }
    }

    /// Returns the words, with the names of red and failed items as far as they fit.
    fn words(&self, width: usize) -> String {
        let bad: Vec<&str> = self.bad.iter().map(String::as_str).collect();
        if bad.is_empty() { self.words.clone() } else { list_names(&format!("{}: ", self.words), &bad, width) }
    }
}

/// Lists as many names as fit, and how many more there are.
fn list_names(start: &str, names: &[&str], width: usize) -> String {
    let whole = format!("{start}{}", names.join(", "));
    if console::measure_text_width(&whole) <= width {
        return whole;
    }
    for count in (1..names.len()).rev() {
        let part = format!("{start}{} and {} more", names[..count].join(", "), names.len() - count);
        if console::measure_text_width(&part) <= width {
            return part;
        }
    }
    let (first, more) = match names.len() {
        0 | 1 => return whole,
        count => (names[0], format!(" and {} more", count - 1)),
    };
    let room = width.saturating_sub(console::measure_text_width(start) + more.len());
    format!("{start}{}{more}", console::truncate_str(first, room, "…"))
}

/// The widths of the columns.
struct Columns {
    whole: usize,
    name: usize,
    status: usize,
}

impl Columns {
    fn fitting(lines: &[Line], whole: usize) -> Self {
        let most = |width: fn(&Line) -> usize| lines.iter().map(width).max().unwrap_or(0);
        let status = most(|line| console::measure_text_width(&line.standing.words)).min(STATUS);
        let needs = if lines.iter().any(|line| line.needs != Needs::Shown) { NEEDS } else { 0 };
        let name = most(Line::width).min(whole.saturating_sub(status + needs + 4)).max(whole / 4);
        Self { whole, name, status }
    }

    /// Formats a row, at most as wide as the whole.
    fn arrange(&self, line: &Line, names: &[String], color: bool) -> Painted {
        let Standing { mark, words, color: shade, .. } = &line.standing;
        let mark = Cell::default().and(line.lines.as_str(), None).and(*mark, *shade);
        let mut cell = table::clip(&mark.and(format!(" {}", line.name), None), self.name);
        let column = if self.status > 0 { self.name + self.status + 4 } else { self.name + 2 };
        let needs = line.needs_words(names, self.whole.saturating_sub(column));
        if !words.is_empty() {
            // A long status may use the place of the dependencies if there are none.
            let room = if needs.is_empty() { self.whole.saturating_sub(self.name + 2) } else { self.status };
            let clipped = table::clip(&Cell::default().and(line.standing.words(room), *shade), room);
            cell = cell.padded(self.name + 2).join(clipped);
        }
        if !needs.is_empty() {
            cell = cell.padded(column).and(needs, None);
        }
        table::clip(&cell, self.whole).painted(color)
    }
}
