//! The report of runs and threads: one HTML file that carries its evidence.
//!
//! The page is its template, filled with facts. Every fact follows from the evidence in the page,
//! or from the claims of the program that wrote it. The page's own script (`verify/`), a second
//! implementation of the format, derives the facts again, fills the same template, and compares the
//! result with the page. Two languages fill the template, so maud and askama cannot.

mod claims;
mod content;
mod evidence;
pub mod export;
mod facts;
pub mod graph;
mod item;
mod markdown;
mod picture;
mod script;
mod template;
mod thread;
mod timeline;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64ct::{Base64, Encoding as _};
use serde::Serialize;
use serde_json::{Value, json};

pub use content::{Content, SMALL, SMALL_SUM};
pub use script::script_hash;

use claims::{Found, RunClaims};
use content::LeftOut;
use facts::RunPage;
use picture::Picture;
use thread::ShownThread;

use crate::git::store::Store;
use crate::ledger::chain;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::time::Moment;
use crate::repository::{Repository, Trust};
use crate::run::query::{Target, View, view};
use crate::share::anchor::verification::VerifyRequest;
use crate::thread::target::ThreadTarget;
use crate::thread::verification::Which;
use crate::verify::{First, LOCAL, Report};

/// The template of the page.
const TEMPLATE: &str = include_str!("page.html");

/// A report to write.
pub struct Request<'a> {
    /// The runs and threads.
    pub names: &'a [String],
    /// The contents to include.
    pub content: Content,
    /// The time that the page states.
    pub written: Moment,
}

/// The file that was written, as `report --json` prints it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.report/1")]
pub struct Written {
    /// The path of the file, as given.
    file: String,
    /// The size of the file.
    bytes: usize,
}

impl Written {
    /// Describes a file with this text.
    pub fn new(path: &Path, text: &str) -> Self {
        Self { file: path.to_string_lossy().into_owned(), bytes: text.len() }
    }
}

/// A run that a report shows.
struct ShownRun {
    report: Report,
    /// The run as read, or `None` if its entries are not a legal history, or contradict the plan.
    view: Option<View>,
    id: RunId,
}

impl ShownRun {
    fn claims(&self) -> RunClaims {
        let picture = self.view.as_ref().map(Picture::draw).unwrap_or_default();
        RunClaims::from_report(&self.report, self.view.is_some(), picture)
    }
}

/// The claims that a page carries as JSON.
#[derive(Serialize)]
struct PageClaims<'a> {
    tool: &'a str,
    written: Moment,
    content: &'static str,
    runs: BTreeMap<&'a str, RunClaims>,
    threads: BTreeMap<&'a str, Found>,
}

impl Repository {
    /// Returns the report of some runs and threads as HTML.
    ///
    /// They are verified with the keys that this repository knows and with its own logs; no anchor
    /// elsewhere is asked.
    pub fn report(&self, request: &Request<'_>) -> Result<String, AnyError> {
        let gathered = self.gather(request.names)?;
        let store = gathered.store();
        let (runs, threads) = (self.shown_runs(request.names, store)?, self.shown_threads(request.names, store)?);
        let mut left_out = LeftOut::default();
        for view in runs.iter().filter_map(|run| run.view.as_ref()) {
            left_out.decide(view, request.content);
        }
        threads.iter().for_each(|thread| left_out.decide_thread(&thread.links, request.content));
        let evidence = evidence::bundle(store, &gathered.refs, &left_out, request.content)?;
        let claims = PageClaims {
            tool: concat!("git-handoff ", env!("CARGO_PKG_VERSION")),
            written: request.written,
            content: request.content.word(),
            runs: runs.iter().map(|run| (run.id.as_str(), run.claims())).collect(),
            threads: threads.iter().map(|thread| (thread.id.as_str(), thread.found())).collect(),
        };
        let run_facts = runs.iter().enumerate().map(|(number, run)| {
            let page = run.view.as_ref().map(|view| RunPage::new(store, view, &evidence.omitted, number));
            run_facts(number, run, page.as_ref(), &claims.runs[run.id.as_str()])
        });
        let mut facts = page_facts(&claims, &evidence.omitted);
        facts["runs"] = run_facts.collect();
        facts["threads"] =
            threads.iter().enumerate().map(|(number, thread)| thread.facts(number, store, &evidence.omitted)).collect();
        facts["evidence"] = base64(&evidence.bundle).into();
        Ok(template::fill(TEMPLATE, &facts).expect("the template's tags match"))
    }

    /// Verifies and reads the named runs, in the order of their ids.
    fn shown_runs(&self, names: &[String], store: &Store) -> Result<Vec<ShownRun>, AnyError> {
        let mut runs = Vec::new();
        for name in names {
            if Target::look_up(&self.store, name)?.is_some() {
                runs.push(name.clone());
            }
        }
        let local = [LOCAL.to_owned()];
        let request = VerifyRequest { anchors: &local, ..VerifyRequest::default() };
        let mut found_runs: Vec<ShownRun> = Vec::new();
        for report in self.verification(request, &mut |_| ())?.found(&runs)?.reports() {
            let report = report?;
            let id = RunId::parse(&report.run).map_err(|_| Error::Unnamed(report.run.clone()))?;
            // After a finding in the chain or the plan, later entries have no defined meaning.
            let is_judged = !report.finding.is_some_and(First::precedes_content);
            let view = view(store, &id, &format::run_ref(&id)).ok().flatten().filter(|_| is_judged);
            found_runs.push(ShownRun { report, view, id });
        }
        found_runs.sort_by(|a, b| a.id.cmp(&b.id));
        found_runs.dedup_by(|a, b| a.id == b.id);
        Ok(found_runs)
    }

    /// Verifies and reads the named threads, in the order of their ids.
    fn shown_threads(&self, names: &[String], store: &Store) -> Result<Vec<ShownThread>, AnyError> {
        let mut threads = Vec::new();
        for name in names {
            if ThreadTarget::look_for(&self.store, name)?.is_some() {
                threads.push(name.clone());
            }
        }
        let verified = self.verify_threads(Which::Named(&threads), &Trust::default(), &mut |_| ())?;
        let mut found_threads: Vec<ShownThread> = Vec::new();
        for report in verified.reports() {
            let report = report?;
            let id = report.thread.clone();
            let links = chain::read(store, &format::thread_ref(&id)).ok().flatten().map(|(_, links)| links);
            found_threads.push(ShownThread { id, report, links: links.unwrap_or_default() });
        }
        found_threads.sort_by(|a, b| a.id.cmp(&b.id));
        found_threads.dedup_by(|a, b| a.id == b.id);
        Ok(found_threads)
    }
}

fn run_facts(number: usize, run: &ShownRun, page: Option<&RunPage<'_>>, claims: &RunClaims) -> Value {
    let anchor = format!("r{number}");
    let mut facts = match page {
        Some(page) => page.facts(&claims.picture),
        None => json!({ "anchor": anchor, "run": run.id, "outcome": "unreadable", "isUnreadable": true }),
    };
    facts["claims"] = claims.found.facts(&anchor);
    facts
}

fn page_facts(claims: &PageClaims<'_>, omitted: &BTreeSet<Oid>) -> Value {
    let names: Vec<&str> = claims.runs.keys().chain(claims.threads.keys()).copied().collect();
    json!({
        "title": names.join(", "),
        "tool": claims.tool,
        "written": claims.written,
        "isNone": claims.content == "none",
        "isSmall": claims.content == "small",
        "isAll": claims.content == "all",
        "omitted": omitted.len(),
        "scriptHash": script_hash().to_string(),
        "claimsJson": in_script(&String::from_utf8_lossy(&format::canonical(claims))),
        "script": script::script(),
    })
}

/// Writes JSON so that it can stand in a script element.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

fn base64(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

errors! {
    /// An error while writing a report.
    #[derive(Debug, thiserror::Error)] pub enum Error = "bad-name";
    Unnamed(String): "the run {0:?} has no valid id";
}
