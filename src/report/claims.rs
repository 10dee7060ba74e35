//! The parts of a page that its evidence does not determine: how the program that wrote it found
//! the runs and threads, which keys it knew, and where the boxes of the graphs are.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::picture::Picture;
use crate::model::printable;
use crate::verify::{Report, Row, SignerSeen, State, ThreadReport};

/// The most characters of a principal on a page; beyond it ends with a mark.
const LONGEST_PRINCIPAL: usize = 120;

/// The claims about a run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunClaims {
    #[serde(flatten)]
    pub(super) found: Found,
    /// Whether the entries could be read as a legal history, so that the page shows items.
    pub(super) is_readable: bool,
    #[serde(flatten)]
    pub(super) picture: Picture,
}

/// How the writer of a page found a run or a thread.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Found {
    headline: String,
    rows: BTreeMap<&'static str, &'static str>,
    /// The codes of the findings of each row that fails; empty for threads.
    codes: BTreeMap<&'static str, Vec<&'static str>>,
    keys: Vec<Key>,
    #[serde(skip)]
    names: Vec<&'static str>,
}

/// A key that signed, as the writer of the page knew it.
#[derive(Clone, Debug, Serialize)]
struct Key {
    fingerprint: String,
    principal: String,
    standing: &'static str,
}

impl RunClaims {
    pub(super) fn from_report(report: &Report, is_readable: bool, picture: Picture) -> Self {
        let partial = if report.is_partial() { " PARTIAL" } else { "" };
        let found = Found::new(format!("{}{partial}", report.headline), report.rows.iter(), &report.signers);
        Self { found, is_readable, picture }
    }
}

impl Found {
    pub(super) fn of_thread(report: &ThreadReport) -> Self {
        let headline = match (report.intact, report.failure) {
            (true, _) => "INTACT".to_owned(),
            (false, Some(failure)) => format!("NOT INTACT: {failure}"),
            (false, None) => "NOT INTACT".to_owned(),
        };
        Self::new(headline, report.rows.iter(), &report.signers)
    }

    fn new<'r>(headline: String, rows: impl Iterator<Item = &'r Row>, signers: &[SignerSeen]) -> Self {
        let rows: Vec<&Row> = rows.collect();
        let failed = rows.iter().filter(|row| !row.codes.is_empty());
        Self {
            headline,
            codes: failed.map(|row| (row.name, row.codes.iter().map(|code| code.word()).collect())).collect(),
            names: rows.iter().map(|row| row.name).collect(),
            rows: rows
                .iter()
                .map(|row| {
                    (
                        row.name,
                        match row.state {
                            State::Ok => "ok",
                            State::Failed => "fail",
                            State::NotApplicable => "open",
                        },
                    )
                })
                .collect(),
            keys: signers.iter().map(Key::from_signer).collect(),
        }
    }

    /// Returns the facts for the template.
    pub(super) fn facts(&self, anchor: &str) -> Value {
        json!({
            "headline": self.headline,
            "rows": self.names.iter().map(|name| {
            let codes = self.codes.get(name).map(|codes| codes.join(", ")).unwrap_or_default();
            let found = match (self.rows.get(name).copied(), codes.as_str()) {
                (Some("ok"), _) => "holds".to_owned(),
                (Some("fail"), "not-sealed") => "not sealed yet".to_owned(),
                (Some("fail"), "") => "does not hold".to_owned(),
                (Some("fail"), codes) => format!("does not hold: {codes}"),
                _ => "not checked".to_owned(),
            };
            let mut row = json!({ "name": name, "place": format!("{anchor}-{name}"), "found": found });
            row[format!("is_{name}")] = true.into();
            row
        }).collect::<Vec<_>>(),
            "keys": self.keys,
        })
    }
}

/// Returns a principal as a page may show it: on one line, without blanks, and cut, so that it
/// cannot be read as a sentence about the page.
fn printed_principal(principal: &str) -> String {
    let plain: String = principal
        .chars()
        .map(|c| if !c.is_whitespace() && !printable::is_unprintable(c) && c != '"' && c != '\\' { c } else { '_' })
        .collect();
    printable::cut_to(plain, LONGEST_PRINCIPAL)
}

impl Key {
    fn from_signer(signer: &SignerSeen) -> Self {
        Self {
            fingerprint: signer.fingerprint.clone(),
            principal: signer.principal.as_deref().map(printed_principal).unwrap_or_default(),
            standing: match (signer.trusted, signer.unknown) {
                (true, _) => "known to the writer of this page",
                (_, true) => "unknown to the writer of this page",
                _ => "not trusted by the writer of this page",
            },
        }
    }
}
