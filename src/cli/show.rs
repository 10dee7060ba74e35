//! `git handoff show`

use git_handoff::git::store::Store;
use git_handoff::model::claims::Reported;
use git_handoff::model::confinement::NONE;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, Exit, ItemEnded, Outcome};
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::manifest::places_in_words;
use git_handoff::model::printable::{self, Painted};
use git_handoff::model::program::{Interpreter, Program};
use git_handoff::model::protected::{allowed_in_words, judged_in_words};
use git_handoff::model::quote::{quoted, quoted_words};
use git_handoff::model::state::{Holder, RunState};
use git_handoff::repository::Repository;
use git_handoff::run::query::saved::Saved;
use git_handoff::run::query::show::{Record, RunDocument, Step, seal};
use git_handoff::run::query::{Target, View, piece, revisions, target};

use super::table::{self, Cell};
use super::{Ending, Failure, Output, cat, gate, progress, saved, shade, status, usage};

/// Show a run, or everything recorded about an item
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run, or RUN/ITEM
    #[arg(value_name = "RUN[/ITEM]")]
    target: String,
    /// Print the output of the item's check
    #[arg(long, conflicts_with = "check_before")]
    check: bool,
    /// Print the output of the check before the work
    #[arg(long)]
    check_before: bool,
}

/// Prints the record.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    for (is_asked, part) in [(arguments.check, "check"), (arguments.check_before, "check-before")] {
        if is_asked {
            let (target, rest) = Target::with_rest(&repository.store, &arguments.target)?;
            let view = target.view(&repository.store)?;
            let item = rest.map(|rest| target::item(&view, rest)).transpose()?;
            let item = item.map(|at| &view.state.graph.item(at).id);
            let before = arguments.check_before;
            let withheld = item.and_then(|item| piece::withheld_output(&repository.store, &view, item, before));
            if let Some(bytes) = withheld {
                output.text(&String::from_utf8_lossy(&bytes));
                return Ok(Ending::Done);
            }
            return cat::print(&format!("{}:{part}", arguments.target), gate::Terms::default(), repository, output);
        }
    }
    let (target, rest) = Target::with_rest(&repository.store, &arguments.target)?;
    let view = target.view(&repository.store)?;
    match rest {
        None if output.json => output.value(&RunDocument::new(&view, &target.reference)),
        None => {
            print_run(&view, &target.reference, &repository.store, output);
            saved::print(&Saved::all(&repository.store, &view)?, output);
        }
        Some(rest) => {
            let record = Record::gather(&repository.store, &view, target::item(&view, rest)?)?;
            if !output.answers(&record) {
                Shown { record: &record, store: &repository.store }.print(output);
            }
        }
    }
    Ok(Ending::Done)
}

fn print_run(view: &View, reference: &str, store: &Store, output: &mut Output) {
    let submitted = &view.state.submitted;
    let first = &view.links[0].entry;
    let ended = match (&view.state.closed, &view.state.cancelled) {
        (Some(reason), _) => format!(", closed: {reason}"),
        (_, Some(reason)) => format!(", cancelled: {reason}"),
        _ => String::new(),
    };
    let state = match seal(view) {
        Some(_) => format!("sealed over {} entries{ended}", view.links.len() - 1),
        None => format!("open, {} entries{ended}", view.links.len()),
    };
    let mut lines = vec![
        format!("run        {}", view.run),
        format!("plan       {}", submitted.plan.sha256),
        format!("base       {}", submitted.base),
        format!("queue      {} ({})", submitted.queue, submitted.pattern),
        format!("submitted  {} by {}", first.at, first.actor),
    ];
    lines.extend(submitted.roles.keys().map(|writer| format!("writer     {writer}")));
    lines.extend(admissions(view));
    lines.extend(submitted.artifacts.iter().map(|(path, is)| format!("artifact   {path}  {}", is.sha256)));
    lines.extend(view.state.pipelines.iter().map(|(name, is)| format!("pipeline   {name}  {}", is.sha256)));
    let documents = revisions::list(view);
    lines.extend(documents.iter().map(|change| {
        let revision = &change.revision;
        format!("document   {}  revision {}, {}", change.name, revision.number, revision.is())
    }));
    lines.extend(view.goal().map(|goal| format!("goal       {}", printable::line(goal))));
    lines.push(format!("state      {state}"));
    lines.extend(seal(view).map(|seal| format!("root       {}", seal.root)));
    lines.push(format!("ref        {reference}"));
    lines.push(String::new());
    lines.iter().for_each(|line| output.line(line));
    status::print_table(view, store, output);
}

/// Formats the admissions and dismissals of keys, in order, with all roles of one key in one line.
fn admissions(view: &View) -> Vec<String> {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for link in &view.links {
        match &link.entry.event {
            Event::RunAdmitted(e) => {
                let line = format!("admitted   {} as ", e.key);
                match lines.last_mut().filter(|(last, _)| *last == line) {
                    Some((_, roles)) => roles.push(e.role.to_string()),
                    None => lines.push((line, vec![e.role.to_string()])),
                }
            }
            Event::RunDismissed(e) => lines.push((format!("dismissed  {}", e.key), Vec::new())),
            _ => {}
        }
    }
    lines.into_iter().map(|(line, roles)| line + &roles.join(", ")).collect()
}

fn row(step: &Step<'_>, state: &RunState) -> Vec<Cell> {
    let with_nothing = matches!(&step.link.entry.event, Event::ItemReconciled(e) if state.ended_with_nothing(e));
    let kind = match &step.link.entry.event {
        Event::ItemReconciled(e) if e.status == Outcome::Failed => "failed",
        event if event.is_red() => status::RED,
        Event::ItemReconciled(e) if e.grade.is_some() && !with_nothing => "claimed",
        Event::ItemReconciled(_) => "done",
        other => other.kind().rsplit('.').next().unwrap_or_default(),
    };
    vec![
        format!("  #{}", step.attempt).into(),
        step.link.entry.at.to_string().into(),
        Cell::default().and(status::ended(kind, with_nothing), shade::of_event(&step.link.entry.event)),
        ended(step.exit).into(),
        step.duration_ms.map(table::duration).unwrap_or_default().into(),
        reason_of(step).into(),
    ]
}

/// Returns the reason of an entry, or what it says about the driver.
fn reason_of(step: &Step<'_>) -> String {
    match &step.link.entry.event {
        Event::ItemFired(e) => Holder::from_fired(e).map(|holder| holder.to_string()).unwrap_or_default(),
        Event::ItemRequeued(e) if e.because.is_some() => format_takeover(e),
        _ => step.reason.clone().unwrap_or_default(),
    }
}

/// Formats a take-over beside the attempt that it ended.
fn format_takeover(e: &ItemEnded) -> String {
    let from = e.driver.as_ref().map(|driver| format!("taken from {}", driver.short()));
    let by = e.taker.as_ref().map(|taker| format!("by {}", taker.short()));
    let words = [from, by].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let because = e.because.map(|because| format!(": {}", because.word())).unwrap_or_default();
    let detail = e.detail.as_ref().map(|detail| format!("; {detail}")).unwrap_or_default();
    format!("{words}{because}{detail}")
}

/// Returns the results of an attempt's blocks.
fn block_rows(step: &Step<'_>) -> Vec<Vec<Cell>> {
    step.blocks
        .iter()
        .map(|block| {
            let found =
                block.verify.map(|found| if found.passed { "the check passed" } else { "the check did not pass" });
            vec![
                format!("  #{} [{}]", step.attempt, block.ordinal).into(),
                block.kind.to_string().into(),
                Cell::default().and(block.status.word(), shade::for_word(block.status.word())),
                ended(block.exit).into(),
                table::duration(block.duration_ms).into(),
                found.unwrap_or_default().into(),
            ]
        })
        .collect()
}

fn ended(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit { code: Some(code), .. }) => format!("exit {code}"),
        Some(Exit { signal: Some(signal), .. }) => format!("signal {signal}"),
        _ => String::new(),
    }
}

/// The record of an item.
struct Shown<'a> {
    record: &'a Record<'a>,
    store: &'a Store,
}

impl Shown<'_> {
    fn print(&self, output: &mut Output) {
        let state = &self.record.view.state.items[self.record.at];
        let item = self.record.view.state.graph.item(self.record.at);
        let reason = state.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        output.line(&format!("item       {}/{}", self.record.view.run, item.id));
        let (word, shade) = status::shaded(self.record.view, self.record.at);
        output.line(Painted::from("status     ").painted(&word, shade.filter(|_| output.color)).words(&reason));
        let mut lines = vec![format!("attempts   {}", state.attempts), format!("executor   {}", item.executor)];
        if item.is_claimed() {
            lines.push("grade      claimed: the commit was made before, and nothing of that is recorded".to_owned());
        }
        lines.extend(item.goal().map(|goal| format!("goal       {}", printable::line(goal))));
        if let Some(summary) = self.record.steps.iter().rev().find_map(|step| step.summary) {
            let mut summary_lines = summary.lines().map(str::trim_end);
            lines.push(format!("summary    {}", summary_lines.next().unwrap_or_default()));
            lines.extend(summary_lines.map(|line| format!("           {line}")));
        }
        let claims = self.record.steps.iter().rev().find_map(|step| step.claims.as_ref());
        lines.extend(claims.into_iter().flat_map(claim_lines));
        if state.judged {
            lines.push(format!("! {}", judged_in_words(state.protected.len())));
        }
        lines.extend(self.record.view.check_remarks(self.store, Some(&[self.record.at])));
        lines.extend(state.approved_by.iter().map(|key| format!("approved by {key}")));
        lines.extend(state.allowed_by.iter().map(|key| allowed_in_words(key)));
        if let Some(by) = self.record.view.state.replaced_by(self.record.at) {
            lines.push(format!("superseded by {by}"));
        }
        lines.extend(item.pipeline().map(|name| format!("pipeline   {name}")));
        if let Some((link, cause)) = self.record.added() {
            let by = progress::cause(cause, &link.entry.actor);
            lines.push(format!("added      by {by}, entry {}", link.entry.seq));
        }
        lines.extend(self.record.saved.iter().flat_map(saved::lines));
        let graph = &self.record.view.state.graph;
        let dependencies: Vec<_> =
            graph.dependencies(self.record.at).iter().map(|on| graph.item(*on).id.as_str()).collect();
        if !dependencies.is_empty() {
            lines.push(format!("after      {}", dependencies.join(", ")));
        }
        lines.iter().for_each(|line| output.line(line));
        section("needs", &table::plain(&self.needs()), output);
        section("products", &table::plain(&self.product_rows()), output);
        section("manifest", &table::plain(&self.manifest_rows()), output);
        let attempts = self.record.steps.iter().map(|step| row(step, &self.record.view.state));
        section("attempts", &attempts.collect::<Vec<_>>(), output);
        let protected = state.protected.iter();
        let protected: Vec<_> = protected
            .map(|change| vec![Cell::from(format!("  {}", change.path)), Cell::from(change.change.as_str())])
            .collect();
        section("protected", &protected, output);
        let excluded = self.record.steps.iter().rev().flat_map(|step| step.excluded);
        let excluded: Vec<_> = excluded.map(|path| vec![Cell::from(format!("  {path}"))]).collect();
        section("left out of the patch", &excluded, output);
        section("blocks", &self.record.steps.iter().flat_map(block_rows).collect::<Vec<_>>(), output);
        self.hints().iter().for_each(|hint| output.hint(hint));
    }

    fn needs(&self) -> Vec<Vec<String>> {
        self.record
            .view
            .state
            .graph
            .item(self.record.at)
            .needs
            .iter()
            .map(|(key, need)| {
                let digest =
                    self.record.consumed().get(key).map_or_else(|| "not consumed yet".into(), |i| i.digest.to_string());
                vec![format!("  {key}"), format!("{} of {}", need.select.product_key(), need.from), digest]
            })
            .collect()
    }

    fn product_rows(&self) -> Vec<Vec<String>> {
        self.record
            .products()
            .iter()
            .map(|(key, product)| {
                vec![
                    format!("  {key}"),
                    product.sha256.to_string(),
                    format!("blob {}", product.oid),
                    table::size(product.size),
                ]
            })
            .collect()
    }

    fn manifest_rows(&self) -> Vec<Vec<String>> {
        let Some(manifest) = &self.record.manifest else { return Vec::new() };
        let mut rows = Vec::new();
        rows.extend(manifest.subagent.as_ref().map(|name| table::field("subagent", name.clone())));
        rows.extend(manifest.pipeline.map(|digest| table::field("pipeline", digest.to_string())));
        rows.extend(manifest.setup.as_deref().map(|argv| table::field("setup", quoted_words(argv))));
        rows.push(table::field("command", quoted_words(&manifest.argv)));
        if let Some(Program { path, sha256, size, version }) = &manifest.claims.program {
            rows.push(table::field("program", file_in_words(path, *sha256, *size)));
            rows.extend(version.clone().map(|version| table::field("version", version)));
        }
        if let Some(Interpreter { path, sha256, size }) = &manifest.claims.interpreter {
            rows.push(table::field("interpreter", file_in_words(path, *sha256, *size)));
        }
        rows.extend(manifest.verify.as_deref().map(|argv| table::field("verify", quoted_words(argv))));
        rows.push(table::field("timeout", format!("{}s", manifest.timeout)));
        let sockets = if manifest.claims.sockets.is_some() { "; the user's sockets were reachable" } else { "" };
        let confinement = if manifest.claims.sandbox == NONE { ", not confined" } else { sockets };
        rows.push(table::field("sandbox", format!("{}{confinement}", manifest.claims.sandbox)));
        rows.extend(manifest.claims.home.map(|_| table::field("access", "home: real".to_owned())));
        let places = manifest.places().into_iter().filter(|(_, places)| !places.is_empty());
        rows.extend(places.map(|(name, places)| {
            table::field("access", format!("{}: {}", places_in_words(name, places.len()), places.join(", ")))
        }));
        rows.extend(manifest.start.map(|tree| table::field("start", tree.to_string())));
        rows.extend(manifest.claims.tags.map(|digest| table::field("tags", digest.to_string())));
        let dispatches = self.record.view.links.iter().rev().filter_map(|link| match &link.entry.event {
            Event::ItemFired(fired) if fired.item == self.record.item().id => Some(fired),
            _ => None,
        });
        let branches = dispatches.take(1).find_map(|fired| fired.claims.as_ref()?.branches);
        rows.extend(branches.map(|digest| table::field("branches", digest.to_string())));
        rows.push(table::field("env", manifest.claims.env.join(" ")));
        if !manifest.claims.secret_env.is_empty() {
            rows.push(table::field("secrets", manifest.claims.secret_env.join(" ")));
        }
        rows.push(table::field("tool", manifest.claims.tool.clone()));
        rows
    }

    /// The commands that print the bytes: ours and git's.
    fn hints(&self) -> Vec<Hint> {
        let mut hints = Vec::new();
        if let Some((key, product)) = self.record.products().iter().next() {
            let what = format!("{}/{}:{key}", self.record.view.run, self.record.item().id);
            hints.push(hints::cat(what));
            hints.push(hints::git_show(format_args!("{:.12}", product.oid.to_string())));
        }
        if self.record.steps.iter().any(|step| step.transcript.is_some_and(|transcript| transcript.size > 0)) {
            hints.push(hints::cat(format_args!("{}/{}:transcript", self.record.view.run, self.record.item().id)));
        }
        hints
    }
}

/// Returns what the worker says about itself.
fn claim_lines(claims: &Reported) -> Vec<String> {
    let model = claims.model.as_ref().map(|text| claim_line("model", text));
    let session = claims.session.as_ref().map(|text| claim_line("session", text));
    let usage = claims.usage.as_ref().map(|used| claim_line("usage", &usage::in_words(used)));
    let denied = claims.permission_denials.map(|denied| claim_line("denied", &usage::denied(denied)));
    [model, session, usage, denied].into_iter().flatten().collect()
}

fn claim_line(name: &str, text: &str) -> String {
    format!("{name:<9}  {}, as the worker says", printable::line(text))
}

/// Returns a file by path, digest and size.
fn file_in_words(path: &str, sha256: Digest, size: u64) -> String {
    format!("{}  {sha256}  {}", quoted(path), table::size(size))
}

fn section(title: &str, rows: &[Vec<Cell>], output: &mut Output) {
    if rows.is_empty() {
        return;
    }
    output.line("");
    output.line(title);
    table::print(rows, output);
}
