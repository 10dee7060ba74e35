//! A repository to tell stories in: true ones, and false ones that are nevertheless linked, sealed and signed.

use std::path::Path;
use std::process::Command;

use git_handoff::chain::{Draft, Head, Link, Writer};
use git_handoff::clock::Clock;
use git_handoff::git::codec;
use git_handoff::git::refs;
use git_handoff::git::store::{Durability, Edit, Store};
use git_handoff::merkle::Frontier;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{
    Again, Entry, Event, InputRef, ItemDropped, ItemEnded, ItemFired, ItemReconciled, LogSealed, LogSubmitted, Outcome,
    Product, RunEnded, RunSealed, RunSubmitted,
};
use git_handoff::model::format;
use git_handoff::model::graph::Graph;
use git_handoff::model::manifest::{self, Manifest};
use git_handoff::model::name::{FilePath, ItemId, RunId};
use git_handoff::model::plan::{Plan, ProductKey, Source};
use git_handoff::model::state::{Phase, RunState};
use git_handoff::model::time::Moment;
use git_handoff::sign::Signer;
use git_handoff::verify::{Options, Report, State, verify};
use serde_json::{Value, json};
use ssh_key::private::Ed25519Keypair;
use ssh_key::{LineEnding, PrivateKey};

pub(crate) const PLAN: &str = r#"{"id":"handoff-dag-1","items":[
  {"id":"edit-a","executor":"command","inputs":{"command":["true"]},"resourceLocks":["build"]},
  {"id":"edit-b","executor":"command","inputs":{"command":"test -f inputs/patch"},"resourceLocks":["build"],
   "needs":{"patch":{"from":"edit-a","select":{"kind":"patch"}},
            "spec":{"from":"@artifacts","select":{"kind":"output","path":"docs/spec.md"}}}}],
  "artifacts":{"docs/spec.md":"spec.md"}}"#;

pub(crate) struct Lab {
    dir: tempfile::TempDir,
    pub(crate) store: Store,
    pub(crate) signer: Signer,
    pub(crate) base: Oid,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with_format("sha1")
    }

    pub(crate) fn with_format(format: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "-b", "main", &format!("--object-format={format}")]);
        git(dir.path(), &["commit", "-q", "--allow-empty", "-m", "base"]);
        let base = git(dir.path(), &["rev-parse", "HEAD"]).parse().unwrap();
        let store = Store::discover(dir.path()).unwrap().with_durability(Durability::Relaxed);
        let signer = key(dir.path(), 1);
        Self { dir, store, signer, base }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(self.path(), args)
    }

    pub(crate) fn writer_with(&self, signer: &Signer) -> Writer {
        Writer {
            store: self.store.clone(),
            signer: signer.clone(),
            clock: Clock::Pinned(Moment::from_millis(1_780_538_400_000)),
            actor: "human:ada".to_owned(),
        }
    }

    /// A whole honest run, published and logged.
    pub(crate) fn honest(&self) -> Told {
        self.finish(Teller::honest(self))
    }

    /// Writes a story, publishes it and logs it.
    pub(crate) fn finish(&self, teller: Teller<'_>) -> Told {
        let told = teller.write(&self.signer);
        self.log(&told, &self.signer);
        told
    }

    /// Appends what the log says of a run.
    pub(crate) fn log(&self, told: &Told, signer: &Signer) {
        self.log_as(told, signer, |_| {});
    }

    pub(crate) fn log_as(&self, told: &Told, signer: &Signer, bend: impl FnOnce(&mut LogSealed)) {
        let log = signer.fingerprint();
        let name = format::log_ref(&log);
        let head = git_handoff::chain::tip(&self.store, &name).unwrap();
        let first = told.links[0].hash;
        let mut events = vec![(
            Event::LogSubmitted(LogSubmitted { log: log.clone(), first }),
            json!({ "run": told.run, "first": first }),
        )];
        let last = told.links.last().unwrap();
        if let Event::RunSealed(seal) = &last.entry.event {
            let mut sealed =
                LogSealed { log, root: seal.root, entries: seal.entries, seal: last.hash, commit: last.commit };
            bend(&mut sealed);
            let record = json!({ "run": told.run, "root": sealed.root, "entries": sealed.entries,
                                 "seal": sealed.seal, "commit": sealed.commit });
            events.push((Event::LogSealed(sealed), record));
        }
        let drafts = events.into_iter().map(|(event, record)| {
            let blob = self.store.write_blob(&format::canonical(&record)).unwrap();
            let edits = vec![(format::log_path(&told.run), Edit::Blob(blob))];
            Draft { run: told.run.clone(), event, edits }
        });
        let appended = self.writer_with(signer).append(&head, drafts.collect()).unwrap();
        let _ = appended.publish().unwrap();
    }

    pub(crate) fn options(&self) -> Options {
        Options { own_key: Some(self.signer.fingerprint()), ..Options::default() }
    }

    pub(crate) fn verify(&self) -> Report {
        self.verify_with(&self.options())
    }

    pub(crate) fn verify_with(&self, options: &Options) -> Report {
        let run = RunId::parse("handoff-dag-1").unwrap();
        verify(&self.store, &run, &format::run_ref(&run), options).unwrap()
    }

    /// Moves the run's ref, and makes sure that it moved.
    pub(crate) fn point_at(&self, oid: Oid) {
        refs::set(&self.store, "refs/handoff/runs/handoff-dag-1", oid).unwrap();
    }
}

/// Writes entries as they are, each on the one before, signed; nothing is put right.
pub(crate) fn relink(lab: &Lab, entries: &[(Entry, Oid)]) -> Oid {
    let mut parents: Vec<Oid> = Vec::new();
    for (entry, tree) in entries {
        let signature = lab.signer.sign(&codec::payload(entry, *tree, &parents)).unwrap();
        let raw = codec::signed(entry, *tree, &parents, &signature);
        parents = vec![lab.store.write(gix::objs::Kind::Commit, &raw).unwrap()];
    }
    parents[0]
}

/// A story that was written and published.
pub(crate) struct Told {
    pub(crate) run: RunId,
    pub(crate) head: Head,
    pub(crate) links: Vec<Link>,
}

/// A story being made up. It derives everything as the format says, and lets anything be bent before it is written.
pub(crate) struct Teller<'a> {
    lab: &'a Lab,
    pub(crate) plan: Plan,
    pub(crate) drafts: Vec<Draft>,
    pub(crate) state: RunState,
    /// Whether a seal's root and count are filled in when it is written.
    pub(crate) true_seal: bool,
}

impl<'a> Teller<'a> {
    pub(crate) fn honest(lab: &'a Lab) -> Self {
        let mut teller = Self::submit(lab, PLAN);
        teller.fire("edit-a");
        teller.done("edit-a", &[("patch", b"diff --git a/x b/x\n"), ("outputs/we ird.bin", b"\0\x01\x02")]);
        teller.fire("edit-b");
        teller.done("edit-b", &[("outputs/report.md", b"fine\n")]);
        teller.seal();
        teller
    }

    pub(crate) fn submit(lab: &'a Lab, plan: &str) -> Self {
        let parsed = git_handoff::plan::parse(plan.as_bytes()).unwrap();
        let spec = b"# Spec\n";
        let fan_out = parsed.items.len() > 256 || parsed.open_ended || !parsed.rules.is_empty();
        let submitted = RunSubmitted {
            plan: Digest::of(plan.as_bytes()),
            artifacts: parsed.artifacts.keys().map(|path| (path.clone(), Digest::of(spec))).collect(),
            base: lab.base,
            queue: parsed.queue.clone(),
            pattern: "dag".to_owned(),
            open_ended: parsed.open_ended,
            writers: vec![lab.signer.fingerprint()],
            fan_out,
            object_format: lab.store.object_format().to_owned(),
            tool: format::TOOL.to_owned(),
        };
        let mut edits = vec![("plan.json".to_owned(), blob(lab, plan.as_bytes()))];
        edits.extend(submitted.artifacts.keys().map(|path| (format::artifact_path(path), blob(lab, spec))));
        let state = RunState::new(submitted.clone(), Graph::new(&parsed));
        let first = Draft { run: parsed.id.clone(), event: Event::RunSubmitted(submitted), edits };
        Self { lab, plan: parsed, drafts: vec![first], state, true_seal: true }
    }

    /// Adds an entry with edits; what the rules do not allow is forced upon the state.
    pub(crate) fn add(&mut self, event: Event, mut edits: Vec<(String, Edit)>) {
        let at = event.item().and_then(|(item, _)| self.state.graph.position(item));
        if let (Err(_), Some(at)) = (self.state.apply(&event), at) {
            let state = &mut self.state.items[at];
            match &event {
                Event::ItemFired(e) => (state.phase, state.attempts) = (Phase::Running, e.attempt),
                Event::ItemReconciled(e) => {
                    state.phase = if e.status == Outcome::Done { Phase::Done } else { Phase::Failed };
                    state.products = e.products.clone();
                }
                _ => {}
            }
        }
        if let Some(at) = at {
            let path = self.state.layout().state(&self.state.graph.item(at).id);
            edits.push((path, blob(self.lab, &self.state.items[at].canonical())));
        }
        self.drafts.push(Draft { run: self.plan.id.clone(), event, edits });
    }

    pub(crate) fn fire(&mut self, item: &str) {
        self.fire_with(item, |_| {});
    }

    /// Dispatches an item with a manifest that is bent first; entry and manifest agree on input refs and attempt.
    pub(crate) fn fire_with(&mut self, item: &str, bend: impl FnOnce(&mut Manifest)) {
        let id = ItemId::parse(item).unwrap();
        let at = self.state.graph.position(&id).unwrap();
        let node = self.state.graph.item(at).clone();
        let argv = match node.inputs.get("command") {
            Some(Value::String(script)) => vec!["sh".to_owned(), "-c".to_owned(), script.clone()],
            Some(Value::Array(argv)) => argv.iter().map(|arg| arg.as_str().unwrap().to_owned()).collect(),
            _ => vec!["agent".to_owned()],
        };
        let mut manifest = Manifest {
            schema: manifest::SCHEMA.to_owned(),
            run: self.plan.id.clone(),
            item: id.clone(),
            attempt: self.state.items[at].attempts + 1,
            base: self.lab.base,
            executor: node.executor.clone(),
            subagent: None,
            argv,
            setup: None,
            verify: None,
            inputs: format::digest_of(&Value::Object(node.inputs.clone())),
            input_refs: node.needs.iter().map(|(key, need)| (key.clone(), self.resolve(need))).collect(),
            env: Vec::new(),
            secret_env: Vec::new(),
            timeout: node.timeout.unwrap_or(7200),
            sandbox: "none".to_owned(),
            tool: format::TOOL.to_owned(),
        };
        bend(&mut manifest);
        let bytes = manifest.canonical();
        let event = ItemFired {
            item: id.clone(),
            attempt: manifest.attempt,
            manifest: Digest::of(&bytes),
            input_refs: manifest.input_refs,
        };
        let edits = vec![(self.state.layout().manifest(&id), blob(self.lab, &bytes))];
        self.add(Event::ItemFired(event), edits);
    }

    fn resolve(&self, need: &git_handoff::model::plan::Need) -> InputRef {
        let product = |id: &ItemId| {
            let at = self.state.graph.position(id).unwrap();
            self.state.items[at].products.get(&need.select.product_key()).map(|product| product.sha256)
        };
        let digest = match &need.from {
            Source::Item(id) => product(id),
            _ => self.state.submitted.artifacts.values().next().copied(),
        };
        let digest = digest.unwrap_or_else(|| Digest::of(b"made up"));
        InputRef { from: need.from.clone(), select: need.select.clone(), digest }
    }

    pub(crate) fn done(&mut self, item: &str, products: &[(&str, &[u8])]) {
        let made = products.iter().map(|(key, bytes)| {
            let product = Product {
                sha256: Digest::of(bytes),
                oid: self.lab.store.write_blob(bytes).unwrap(),
                size: bytes.len() as u64,
            };
            (key.parse().unwrap(), product)
        });
        let made = made.collect();
        self.end(item, Outcome::Done, made);
    }

    pub(crate) fn fail(&mut self, item: &str) {
        self.end(item, Outcome::Failed, std::collections::BTreeMap::new());
    }

    fn end(&mut self, item: &str, status: Outcome, products: std::collections::BTreeMap<ProductKey, Product>) {
        let id = ItemId::parse(item).unwrap();
        let at = self.state.graph.position(&id).unwrap();
        let layout = self.state.layout();
        let mut edits = Vec::new();
        for (key, product) in &products {
            let path = match key {
                ProductKey::Patch => layout.patch(&id),
                ProductKey::Output(path) => layout.output(&id, path),
                ProductKey::Document(name) => format::document_path(name),
            };
            edits.push((path, Edit::Blob(product.oid)));
        }
        let event = ItemReconciled {
            item: id,
            attempt: self.state.items[at].attempts,
            status,
            reason: (status == Outcome::Failed).then(|| "exit code 1".to_owned()),
            exit: None,
            duration_ms: 12,
            products,
            verify: None,
            transcript: None,
        };
        self.add(Event::ItemReconciled(event), edits);
    }

    pub(crate) fn skip(&mut self, item: &str) {
        let id = ItemId::parse(item).unwrap();
        let attempt = self.state.items[self.state.graph.position(&id).unwrap()].attempts;
        self.add(Event::ItemSkipped(ItemDropped { item: id, attempt, reason: "edit-a failed".to_owned() }), Vec::new());
    }

    pub(crate) fn requeue(&mut self, item: &str, reason: Again) {
        let id = ItemId::parse(item).unwrap();
        let attempt = self.state.items[self.state.graph.position(&id).unwrap()].attempts;
        let event = ItemEnded {
            item: id,
            attempt,
            reason,
            detail: None,
            exit: None,
            duration_ms: None,
            transcript: None,
            not_before: None,
        };
        let event = if reason == Again::Failure { Event::ItemRetried(event) } else { Event::ItemRequeued(event) };
        self.add(event, Vec::new());
    }

    pub(crate) fn close(&mut self) {
        self.add(Event::RunClosed(RunEnded { reason: "enough".to_owned() }), Vec::new());
    }

    pub(crate) fn seal(&mut self) {
        let seal = RunSealed { root: Digest::of(b""), entries: 0, counts: self.state.counts() };
        self.add(Event::RunSealed(seal), Vec::new());
    }

    /// Writes the story with true links, true seals and true signatures, and publishes it.
    pub(crate) fn write(self, signer: &Signer) -> Told {
        let writer = self.lab.writer_with(signer);
        let mut head = Head::unborn(String::new());
        let (mut links, mut frontier) = (Vec::<Link>::new(), Frontier::default());
        for mut draft in self.drafts {
            if let (Event::RunSealed(seal), true) = (&mut draft.event, self.true_seal) {
                (seal.root, seal.entries) = (frontier.root(), frontier.len());
            }
            let appended = writer.append(&head, vec![draft]).unwrap();
            let link = appended.links()[0].clone();
            head = next(&head, &link);
            frontier.push(link.hash);
            links.push(link);
        }
        refs::set(&self.lab.store, &format::run_ref(&self.plan.id), links.last().unwrap().commit).unwrap();
        Told { run: self.plan.id, head, links }
    }
}

/// The head after a link, without publishing.
pub(crate) fn next(head: &Head, link: &Link) -> Head {
    Head {
        name: head.name.clone(),
        commit: Some(link.commit),
        tree: Some(link.tree),
        last: Some(link.hash),
        at: Some(link.entry.at),
        entries: head.entries + 1,
    }
}

pub(crate) fn blob(lab: &Lab, bytes: &[u8]) -> Edit {
    Edit::Blob(lab.store.write_blob(bytes).unwrap())
}

pub(crate) fn key(dir: &Path, seed: u8) -> Signer {
    let pair = Ed25519Keypair::from_seed(&[seed; 32]);
    let path = dir.join(format!(".git/key-{seed}"));
    std::fs::write(&path, PrivateKey::from(pair).to_openssh(LineEnding::LF).unwrap().as_bytes()).unwrap();
    Signer::from_file(&path).unwrap()
}

/// Runs stock git and returns what it printed.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = stock_git(dir, args);
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

pub(crate) fn stock_git(dir: &Path, args: &[&str]) -> std::process::Output {
    let home = dir.join(".git");
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "ada").env(format!("GIT_{who}_EMAIL"), "ada@example.com");
        command.env(format!("GIT_{who}_DATE"), "1780538400 +0000");
    }
    command.output().unwrap()
}

pub(crate) fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

/// The row that must fail, and a part of what it must say.
#[track_caller]
pub(crate) fn assert_fails(report: &Report, row: &str, part: &str) {
    let text = report.to_text(false);
    let row = report.row(row).unwrap();
    assert!(row.state == State::Failed && row.detail.contains(part), "wanted ✗ {} …{part}…, got\n{text}", row.name);
    assert!(!report.intact, "{text}");
}

/// All rows hold.
#[track_caller]
pub(crate) fn assert_intact(report: &Report) {
    assert!(report.intact && report.rows.iter().all(|row| row.state == State::Ok), "{}", report.to_text(false));
}
