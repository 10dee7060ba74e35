//! `git handoff show`

use std::collections::BTreeMap;

use git_handoff::ledger::chain::Link;
use git_handoff::model::entry::{
    Cause, Event, Exit, InputRef, ItemReconciled, Outcome, Product, RunSealed, Transcript, VerifiedBy,
};
use git_handoff::model::manifest::Manifest;
use git_handoff::model::name::{FilePath, ItemId};
use git_handoff::model::plan::ProductKey;
use git_handoff::model::quote::quoted;
use git_handoff::repository::Repository;
use git_handoff::run::documents::DocumentShown;
use git_handoff::run::list::ItemStatus;
use git_handoff::run::{Target, View, document, target};
use serde_json::{Value, json};

use super::{Ending, Failure, Output, progress, status, table};

/// Show a run, or everything that is recorded about one of its items
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run, or RUN/ITEM
    #[arg(value_name = "RUN[/ITEM]")]
    target: String,
}

/// Prints what the entries say.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (target, rest) = Target::with_rest(&repository.store, &arguments.target)?;
    let view = target.view(&repository.store)?;
    match rest {
        None if output.json => output.value(&run_value(&view, &target.reference)),
        None => print_run(&view, &target.reference, output),
        Some(rest) => {
            let item = Item::gather(&view, &target.reference, target::item(&view, rest)?, repository)?;
            if output.json {
                output.value(&item.value());
            } else {
                item.print(output);
            }
        }
    }
    Ok(Ending::Done)
}

fn run_value(view: &View, reference: &str) -> Value {
    let state = &view.state;
    let first = &view.links[0].entry;
    let seal = view.links.iter().find_map(sealed);
    json!({
        "schema": "git-handoff.show/1",
        "run": view.run,
        "ref": reference,
        "commit": view.head.commit,
        "plan": state.submitted.plan,
        "base": state.submitted.base,
        "queue": state.submitted.queue,
        "pattern": state.submitted.pattern,
        "writers": state.submitted.writers,
        "artifacts": state.submitted.artifacts,
        "submittedAt": first.at,
        "submittedBy": first.actor,
        "tool": state.submitted.tool,
        "entries": view.links.len(),
        "sealed": state.sealed,
        "root": seal.map(|seal| seal.root),
        "closed": state.closed,
        "cancelled": state.cancelled,
        "documents": document::list(view).iter().map(DocumentShown::of).collect::<Vec<_>>(),
        "items": ItemStatus::all(view),
    })
}

fn sealed(link: &Link) -> Option<&RunSealed> {
    match &link.entry.event {
        Event::RunSealed(sealed) => Some(sealed),
        _ => None,
    }
}

fn print_run(view: &View, reference: &str, output: &mut Output) {
    let submitted = &view.state.submitted;
    let first = &view.links[0].entry;
    let ended = match (&view.state.closed, &view.state.cancelled) {
        (Some(reason), _) => format!(", closed: {reason}"),
        (_, Some(reason)) => format!(", cancelled: {reason}"),
        _ => String::new(),
    };
    let state = match view.links.iter().find_map(sealed) {
        Some(seal) => format!("sealed over {} entries{ended}", seal.entries),
        None => format!("open, {} entries{ended}", view.links.len()),
    };
    let mut lines = vec![
        format!("run        {}", view.run),
        format!("plan       {}", submitted.plan),
        format!("base       {}", submitted.base),
        format!("queue      {} ({})", submitted.queue, submitted.pattern),
        format!("submitted  {} by {}", first.at, first.actor),
    ];
    lines.extend(submitted.writers.iter().map(|writer| format!("writer     {writer}")));
    lines.extend(submitted.artifacts.iter().map(|(path, digest)| format!("artifact   {path}  {digest}")));
    let documents = document::list(view);
    lines.extend(documents.iter().map(|change| {
        let revision = &change.revision;
        format!("document   {}  revision {}, {}", change.name, revision.number, revision.is())
    }));
    lines.push(format!("state      {state}"));
    lines.extend(view.links.iter().find_map(sealed).map(|seal| format!("root       {}", seal.root)));
    lines.push(format!("ref        {reference}"));
    lines.push(String::new());
    lines.iter().for_each(|line| output.line(line));
    status::print_table(view, output);
}

/// One attempt's entry, as far as it is worth showing.
struct Step<'a> {
    link: &'a Link,
    attempt: u32,
    said: Option<String>,
    exit: Option<Exit>,
    duration_ms: Option<u64>,
    transcript: Option<Transcript>,
}

impl<'a> Step<'a> {
    fn of(link: &'a Link, id: &ItemId) -> Option<Self> {
        let (_, attempt) = link.entry.event.item().filter(|(item, _)| *item == id)?;
        let plain = Self { link, attempt, said: None, exit: None, duration_ms: None, transcript: None };
        Some(match &link.entry.event {
            Event::ItemReconciled(e) => Self {
                said: e.reason.clone().or_else(|| verified(e)),
                exit: e.exit,
                duration_ms: Some(e.duration_ms),
                transcript: e.transcript,
                ..plain
            },
            Event::ItemRetried(e) | Event::ItemRequeued(e) => Self {
                said: e.detail.clone(),
                exit: e.exit,
                duration_ms: e.duration_ms,
                transcript: e.transcript,
                ..plain
            },
            Event::ItemSkipped(e) | Event::ItemCancelled(e) => Self { said: Some(e.reason.clone()), ..plain },
            _ => plain,
        })
    }

    fn value(&self) -> Value {
        json!({
            "seq": self.link.entry.seq,
            "at": self.link.entry.at,
            "actor": self.link.entry.actor,
            "kind": self.link.entry.event.kind(),
            "attempt": self.attempt,
            "reason": self.said,
            "exit": self.exit,
            "durationMs": self.duration_ms,
            "transcript": self.transcript,
            "hash": self.link.hash,
            "commit": self.link.commit,
        })
    }

    fn row(&self) -> Vec<String> {
        let exit = match self.exit {
            Some(Exit { code: Some(code), .. }) => format!("exit {code}"),
            Some(Exit { signal: Some(signal), .. }) => format!("signal {signal}"),
            _ => String::new(),
        };
        let kind = match &self.link.entry.event {
            Event::ItemReconciled(e) if e.status == Outcome::Failed => "failed",
            Event::ItemReconciled(_) => "done",
            other => other.kind().rsplit('.').next().unwrap_or_default(),
        };
        vec![
            format!("  #{}", self.attempt),
            self.link.entry.at.to_string(),
            kind.to_owned(),
            exit,
            self.duration_ms.map(table::duration).unwrap_or_default(),
            self.said.clone().unwrap_or_default(),
        ]
    }
}

fn verified(e: &ItemReconciled) -> Option<String> {
    let verify = e.verify?;
    let passed = if verify.passed { "passed" } else { "did not pass" };
    let by = match verify.by {
        VerifiedBy::Command => "the verify command",
        VerifiedBy::Itself => "the item's own word",
    };
    Some(format!("verify {passed}, by {by}"))
}

/// Everything that is recorded about one item.
struct Item<'a> {
    view: &'a View,
    reference: &'a str,
    at: usize,
    manifest: Option<Manifest>,
    steps: Vec<Step<'a>>,
}

impl<'a> Item<'a> {
    fn gather(view: &'a View, reference: &'a str, at: usize, repository: &Repository) -> Result<Self, Failure> {
        let id = &view.state.graph.item(at).id;
        let blob = match view.head.tree {
            Some(tree) => repository.store.blob_at(tree, &view.state.layout().manifest(id))?,
            None => None,
        };
        // In a partial clone the manifest may be elsewhere; all else can be told without it.
        let bytes = blob
            .filter(|oid| repository.store.contains(*oid))
            .map(|oid| repository.store.read_blob(oid))
            .transpose()?;
        let manifest = bytes.and_then(|bytes| Manifest::parse(&bytes).ok());
        let steps = view.links.iter().filter_map(|link| Step::of(link, id)).collect();
        Ok(Self { view, reference, at, manifest, steps })
    }

    fn id(&self) -> &'a ItemId {
        &self.view.state.graph.item(self.at).id
    }

    /// Returns the entry that added the item, and what made it; none for an item of the plan.
    fn added(&self) -> Option<(&'a Link, &'a Cause)> {
        self.view.links.iter().find_map(|link| match &link.entry.event {
            Event::RunExtended(e) => e.items.contains_key(self.id()).then_some((link, &e.cause)),
            _ => None,
        })
    }

    fn products(&self) -> &'a BTreeMap<ProductKey, Product> {
        &self.view.state.items[self.at].products
    }

    fn consumed(&self) -> &'a BTreeMap<FilePath, InputRef> {
        &self.view.state.items[self.at].inputs
    }

    fn value(&self) -> Value {
        let item = self.view.state.graph.item(self.at);
        let mut value = json!(ItemStatus::of(self.view, self.at));
        let needs: BTreeMap<String, Value> = item
            .needs
            .iter()
            .map(|(key, need)| {
                let mut shown = need.to_json();
                shown["ref"] = json!(self.consumed().get(key).map(|input| input.digest));
                (key.to_string(), shown)
            })
            .collect();
        value["schema"] = json!("git-handoff.show/1");
        value["run"] = json!(self.view.run);
        if let Some((link, cause)) = self.added() {
            value["added"] = json!({ "entry": link.entry.seq, "cause": cause });
        }
        value["executor"] = json!(item.executor);
        value["inputs"] = json!(item.inputs);
        value["needs"] = json!(needs);
        value["products"] = json!(self.products());
        value["manifest"] = json!(self.manifest);
        value["entries"] = self.steps.iter().map(Step::value).collect();
        value
    }

    fn print(&self, output: &mut Output) {
        let state = &self.view.state.items[self.at];
        let item = self.view.state.graph.item(self.at);
        let reason = state.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let names = |at: &[usize]| {
            let ids: Vec<_> = at.iter().map(|on| self.view.state.graph.item(*on).id.as_str()).collect();
            ids.join(", ")
        };
        let mut lines = vec![
            format!("item       {}/{}", self.view.run, item.id),
            format!("status     {}{reason}", self.view.state.status(self.at)),
            format!("attempts   {}", state.attempts),
            format!("executor   {}", item.executor),
        ];
        if let Some((link, cause)) = self.added() {
            let by = progress::cause(cause, &link.entry.actor);
            lines.push(format!("added      by {by}, entry {}", link.entry.seq));
        }
        let dependencies = self.view.state.graph.dependencies(self.at);
        if !dependencies.is_empty() {
            lines.push(format!("after      {}", names(dependencies)));
        }
        lines.extend(section("needs", &self.needs()));
        lines.extend(section("products", &self.product_rows()));
        lines.extend(section("manifest", &self.manifest_rows()));
        lines.extend(section("attempts", &self.steps.iter().map(Step::row).collect::<Vec<_>>()));
        lines.iter().for_each(|line| output.line(line));
        self.hints().iter().for_each(|hint| output.hint(hint));
    }

    fn needs(&self) -> Vec<Vec<String>> {
        let row = |(key, need): (&FilePath, &git_handoff::model::plan::Need)| {
            let digest = self.consumed().get(key).map_or_else(|| "not consumed yet".into(), |i| i.digest.to_string());
            vec![format!("  {key}"), format!("{} of {}", need.select.product_key(), need.from), digest]
        };
        self.view.state.graph.item(self.at).needs.iter().map(row).collect()
    }

    fn product_rows(&self) -> Vec<Vec<String>> {
        let row = |(key, product): (&ProductKey, &Product)| {
            vec![
                format!("  {key}"),
                product.sha256.to_string(),
                format!("blob {}", product.oid),
                table::size(product.size),
            ]
        };
        self.products().iter().map(row).collect()
    }

    fn manifest_rows(&self) -> Vec<Vec<String>> {
        let Some(manifest) = &self.manifest else { return Vec::new() };
        let row = |name: &str, value: String| vec![format!("  {name}"), value];
        let words = |argv: &[String]| argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let mut rows = Vec::new();
        rows.extend(manifest.subagent.as_ref().map(|name| row("subagent", name.clone())));
        rows.extend(manifest.setup.as_deref().map(|argv| row("setup", words(argv))));
        rows.push(row("command", words(&manifest.argv)));
        rows.extend(manifest.verify.as_deref().map(|argv| row("verify", words(argv))));
        rows.push(row("timeout", format!("{}s", manifest.timeout)));
        rows.push(row("sandbox", manifest.sandbox.clone()));
        rows.push(row("env", manifest.env.join(" ")));
        if !manifest.secret_env.is_empty() {
            rows.push(row("secrets", manifest.secret_env.join(" ")));
        }
        rows.push(row("tool", manifest.tool.clone()));
        rows
    }

    /// The commands that print the bytes: ours, and stock git's.
    fn hints(&self) -> Vec<String> {
        let layout = self.view.state.layout();
        let mut hints = Vec::new();
        if let Some(key) = self.products().keys().next() {
            let path = layout.product(self.id(), key);
            let what = format!("{}/{}:{key}", self.view.run, self.id());
            hints.push(format!("git handoff cat {}", quoted(&what)));
            hints.push(format!("git show {}", quoted(&format!("{}:{path}", self.reference))));
        }
        if self.steps.iter().any(|step| step.transcript.is_some_and(|transcript| transcript.size > 0)) {
            hints.push(format!("git handoff cat {}", quoted(&format!("{}/{}:transcript", self.view.run, self.id()))));
        }
        hints
    }
}

fn section(title: &str, rows: &[Vec<String>]) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), title.to_owned()];
    lines.extend(table::lines(rows));
    lines
}
