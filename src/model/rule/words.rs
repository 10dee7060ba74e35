//! Formats a rule in words.

use std::fmt;

use super::{Made, Rule, Then};

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.id)?;
        let present = self.when.present.iter().map(|name| format!("{name} is there"));
        let absent = self.when.absent.iter().map(|name| format!("{name} is not there"));
        let conditions = self.when.conditions.iter().map(ToString::to_string);
        let items = self.when.items.iter().map(ToString::to_string);
        let when: Vec<String> = present.chain(absent).chain(conditions).chain(items).collect();
        if !when.is_empty() {
            write!(f, "when {}, ", when.join(" and "))?;
        }
        match &self.then {
            Then::One(item) => write!(f, "{}-…", item.id)?,
            Then::Several(several) => {
                let made = several.made.iter().map(|made| match made {
                    Made::Template(template) => template.item.id.to_string(),
                    Made::Again(item) => format!("{item} again, with all that was skipped because of it"),
                });
                write!(f, "{}", made.collect::<Vec<_>>().join(", "))?;
                if let Some(item) = &several.for_each {
                    write!(f, " for each output of {item}")?;
                }
            }
            Then::Outcome(word) => return write!(f, "the run says {word}"),
            Then::Order(order) => {
                let edges = order.iter().map(|(item, on)| {
                    let on: Vec<&str> = on.iter().map(super::ItemId::as_str).collect();
                    format!("{item} after {}", on.join(", "))
                });
                return f.write_str(&edges.collect::<Vec<_>>().join("; "));
            }
            Then::Gate(gate) => {
                let what = match (gate.blocks, gate.votes) {
                    (_, true) => "a vote",
                    (true, _) => "a gate that blocks what depends on it",
                    (false, _) => "a gate that lets pass what depends on it",
                };
                return write!(f, "{} is {what}", gate.item);
            }
        }
        match self.when.at_most {
            1 => Ok(()),
            most => write!(f, ", at most {most} times"),
        }
    }
}
