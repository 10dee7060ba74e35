//! The row `schema`: are all fields present, of the right type, and not empty?

use super::Row;
use super::quote::quoted;
use crate::model::packet::{Form, Packet, Renamed};
use crate::model::printable::written_out;

/// The maximum number of named faults or unknown fields.
const SHOWN: usize = 12;

/// Checks the fields of a packet.
pub(super) fn row(packet: &Packet) -> Row {
    let mut detail = if packet.faults.is_empty() {
        "all required fields present and non-empty".to_owned()
    } else {
        let faults = packet.faults.iter().take(SHOWN).map(|fault| {
            if fault.field.is_empty() {
                written_out(&fault.what)
            } else {
                format!("{} {}", written_out(&fault.field), written_out(&fault.what))
            }
        });
        listed(&faults.collect::<Vec<_>>(), packet.faults.len(), "; ")
    };
    if let Some(source) = source(packet) {
        detail = format!("{detail} (read from {source})");
    }
    if !packet.unknown.is_empty() {
        let fields = packet.unknown.iter().take(SHOWN).map(|field| quoted(field)).collect::<Vec<_>>();
        detail = format!("{detail} (unknown fields: {})", listed(&fields, packet.unknown.len(), ", "));
    }
    Row::new("schema", packet.faults.is_empty(), detail)
}

/// Formats the form of a note and its names for fields; empty for plain JSON.
fn source(packet: &Packet) -> Option<String> {
    let names = packet.renamed.iter().map(|Renamed { field, from }| {
        let from: Vec<String> = from.iter().map(|name| quoted(name)).collect();
        format!("{field} from {}", listed(&from[..from.len().min(SHOWN)], from.len(), ", "))
    });
    let names = names.collect::<Vec<_>>().join("; ");
    match (packet.form, names.is_empty()) {
        (Form::Json, true) => None,
        (form, true) => Some(form.as_str().to_owned()),
        (form, false) => Some(format!("{}: {names}", form.as_str())),
    }
}

/// Joins the displayed ones of several things.
pub(super) fn listed(items: &[String], all: usize, between: &str) -> String {
    let more = all.saturating_sub(items.len());
    let text = items.join(between);
    if more == 0 { text } else { format!("{text}{between}and {more} more") }
}
