//! The messages of commits that `apply` creates: the user's text and trailers that name the items.

use std::fmt::Write as _;

use crate::model::digest::{Digest, Oid};
use crate::model::name::{ItemId, RunId};

use super::{ITEM, PRODUCT, RESOLVED, RUN, Step};

/// The prefix of all our trailers.
const OURS: &str = "handoff-";

/// The user's text for a commit, in which no line reads as one of our trailers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message(String);

impl Message {
    /// Joins paragraphs, stripping white space and repeated empty lines as git does.
    pub fn new<S: AsRef<str>>(paragraphs: &[S]) -> Result<Self, Error> {
        let text = paragraphs.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("\n\n");
        let text = stripped(&text);
        if text.is_empty() {
            return Err(Error::Empty);
        }
        match claims(&text).into_iter().next() {
            Some(line) => Err(Error::Claims(line.to_owned())),
            None => Ok(Self(text)),
        }
    }
}

/// Returns the message of a commit of one or more items.
pub(super) fn compose(run: &RunId, steps: &[Step], own: Option<&Message>) -> String {
    let mut trailers = String::new();
    // A resolved item differs from its product, so a separate line names it that does not claim the
    // product.
    for step in steps.iter().filter(|step| step.resolved) {
        writeln!(trailers, "{RESOLVED}: {run}/{} {}", step.item, step.product)
            .expect("writing to a string does not fail");
    }
    for (nth, step) in steps.iter().filter(|step| !step.resolved).enumerate() {
        if nth == 0 {
            writeln!(trailers, "{RUN}: {run}").expect("writing to a string does not fail");
        }
        writeln!(trailers, "{ITEM}: {}\n{PRODUCT}: {}", step.item, step.product)
            .expect("writing to a string does not fail");
    }
    with_trailers(own.map_or_else(|| subject(run, steps), |own| own.0.clone()).as_str(), &trailers)
}

/// The item that a commit message names, for a commit of one item.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) run: RunId,
    pub(super) item: ItemId,
    pub(super) product: Digest,
    pub(super) resolved: bool,
}

impl Named {
    /// Returns the item as an applied step.
    pub(super) fn step(&self, tree: Oid) -> Step {
        let (item, product, resolved) = (self.item.clone(), self.product, self.resolved);
        Step {
            item,
            product,
            tree,
            changed: true,
            folded: false,
            commit: None,
            red: false,
            judged: Vec::new(),
            resolved,
            without_protected: false,
        }
    }

    /// Returns the line that names a resolved item.
    fn line(&self) -> String {
        format!("{RESOLVED}: {}/{} {}", self.run, self.item, self.product)
    }
}

/// Parses the item from a message that [`compose`] wrote.
pub(super) fn read_trailers(message: &str) -> Option<Named> {
    let value = |key| message.lines().rev().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    let resolved = value(RESOLVED).and_then(|value| {
        let (name, product) = value.split_once(' ')?;
        let (run, item) = name.split_once('/')?;
        Some((run, item, product))
    });
    let (run, item, product) = resolved.or_else(|| Some((value(RUN)?, value(ITEM)?, value(PRODUCT)?)))?;
    let (run, item, product) = (run.parse().ok()?, item.parse().ok()?, product.parse().ok()?);
    Some(Named { run, item, product, resolved: resolved.is_some() })
}

/// Rewrites a message that names a product into one that names a resolution.
pub(super) fn as_resolved(message: &str, item: &Named) -> String {
    let claims = [format!("{ITEM}: {}", item.item), format!("{PRODUCT}: {}", item.product)];
    let lines = message.lines().filter(|line| !claims.iter().any(|claim| claim == line));
    let run = format!("{RUN}: {}", item.run);
    lines.map(|line| if line == run { item.line() } else { line.to_owned() } + "\n").collect()
}

/// Returns the default first line.
fn subject(run: &RunId, steps: &[Step]) -> String {
    let items: Vec<_> = steps.iter().map(|step| step.item.as_str()).collect();
    let patches = if steps.len() == 1 { "patch" } else { "patches" };
    format!("{}: apply the {patches} of {run}", items.join(", "))
}

/// Appends trailers to a text, in one block with its own trailers, so that git reads all of them.
fn with_trailers(text: &str, trailers: &str) -> String {
    let last = text.rsplit_once("\n\n").map(|(_, last)| last);
    let separator = if last.is_some_and(is_trailers) { "\n" } else { "\n\n" };
    format!("{text}{separator}{trailers}")
}

/// Returns true if a paragraph consists of trailers and their continuation lines.
fn is_trailers(paragraph: &str) -> bool {
    let mut first = true;
    paragraph.lines().all(|line| {
        let further = !std::mem::take(&mut first) && line.starts_with([' ', '\t']);
        further || line.split_once(": ").is_some_and(|(key, _)| is_token(key))
    })
}

fn is_token(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Returns the lines that could be read as our trailers, anywhere in the text.
pub(super) fn claims(text: &str) -> Vec<&str> {
    text.lines()
        .map(str::trim)
        .filter(|line| {
            let key = line.split_once(':').map(|(key, _)| key.trim_end().to_ascii_lowercase());
            key.is_some_and(|key| key.starts_with(OURS) && is_token(&key))
        })
        .collect()
}

/// Strips white space as `git stripspace` does.
pub(super) fn stripped(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.dedup_by(|next, line| next.is_empty() && line.is_empty());
    lines.join("\n").trim_matches('\n').to_owned()
}

errors! {
    /// Why a text cannot be a commit message.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Empty: "the message is empty";
    Claims(String): "the message has the line {0:?}, which would be read as a trailer of this program";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_could_be_read_as_ours_are_refused() {
        for text in [
            "Fix\n\nHandoff-Run: r",
            "  handoff-item :x",
            "Fix\n\n    HANDOFF-Anything: 1\nmore",
            "a\r\nHandoff-Run:r\r\n",
        ] {
            assert!(matches!(Message::new(&[text]), Err(Error::Claims(_))), "{text}");
        }
        for text in
            ["Fix: the Handoff-Run", "Handoff-Run is a trailer", "The handoff-thing of mine: x", "Reviewed-by: x"]
        {
            assert!(Message::new(&[text]).is_ok(), "{text}");
        }
        assert!(matches!(Message::new(&["", " \n\t"]), Err(Error::Empty)));
    }

    #[test]
    fn trailers_that_a_message_ends_with_stay_trailers() {
        assert_eq!(put("Fix"), "Fix\n\nHandoff-Run: r\n");
        assert_eq!(put("Fix: it"), "Fix: it\n\nHandoff-Run: r\n");
        assert_eq!(put("Fix \n\n\n\nWhy\n\n"), "Fix\n\nWhy\n\nHandoff-Run: r\n");
        assert_eq!(
            put("Fix\n\nSigned-off-by: A\n B\nAcked-by: C"),
            "Fix\n\nSigned-off-by: A\n B\nAcked-by: C\nHandoff-Run: r\n"
        );
        assert_eq!(put("Fix\n\nSigned-off-by: A\nnot one"), "Fix\n\nSigned-off-by: A\nnot one\n\nHandoff-Run: r\n");
    }

    fn put(text: &str) -> String {
        with_trailers(Message::new(&[text]).unwrap().0.as_str(), "Handoff-Run: r\n")
    }
}
