//! A repository for chains of entries that the library writes: honest ones, and forged ones that
//! are nevertheless linked, sealed and signed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use git_handoff::clock::Clock;
use git_handoff::git::codec;
use git_handoff::git::refs;
use git_handoff::git::store::{Durability, Edit, Store};
use git_handoff::ledger::chain::{Draft, Head, Link, Writer};
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Oid;
use git_handoff::model::entry::{Entry, Event, LogRecorded, Product, Subject};
use git_handoff::model::format;
use git_handoff::model::name::{FilePath, RunId};
use git_handoff::model::time::Moment;
use git_handoff::verify::{Code, Options, Report, Row, State, verify};
use ssh_key::private::Ed25519Keypair;
use ssh_key::{LineEnding, PrivateKey};

use super::chain_builder::{BuiltChain, ChainBuilder};
use super::report::without_hashes;
use super::spawned;

pub(crate) const PLAN: &str = r#"{"id":"handoff-dag-1","items":[
  {"id":"edit-a","executor":"command","inputs":{"command":["true"]},"resourceLocks":["build"]},
  {"id":"edit-b","executor":"command","inputs":{"command":"test -f inputs/patch"},"resourceLocks":["build"],
   "needs":{"patch":{"from":"edit-a","select":{"kind":"patch"}},
            "spec":{"from":"@artifacts","select":{"kind":"output","path":"docs/spec.md"}}}}],
  "artifacts":{"docs/spec.md":"spec.md"}}"#;

pub(crate) struct Forge {
    dir: tempfile::TempDir,
    pub(crate) store: Store,
    pub(crate) signer: Signer,
    pub(crate) base: Oid,
}

impl Forge {
    pub(crate) fn new() -> Self {
        Self::with_format("sha1")
    }

    pub(crate) fn with_format(format: &str) -> Self {
        let dir = crate::common::folder();
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
    pub(crate) fn honest(&self) -> BuiltChain {
        self.finish(ChainBuilder::honest(self))
    }

    /// Writes a chain, publishes it and logs it.
    pub(crate) fn finish(&self, chain_builder: ChainBuilder<'_>) -> BuiltChain {
        let chain = chain_builder.write(&self.signer);
        self.log(&chain, &self.signer);
        chain
    }

    /// Appends what the log says of a run.
    pub(crate) fn log(&self, chain: &BuiltChain, signer: &Signer) {
        self.log_as(chain, signer, |_| {});
    }

    pub(crate) fn log_as(&self, chain: &BuiltChain, signer: &Signer, bend: impl FnOnce(&mut LogRecorded)) {
        let log = signer.fingerprint();
        let name = format::log_ref(&log);
        let head = git_handoff::ledger::chain::tip(&self.store, &name).unwrap();
        let first = chain.links[0].hash;
        let mut recorded = vec![LogRecorded::begin(log.clone(), first)];
        let last = chain.links.last().unwrap();
        if let Event::RunSealed(seal) = &last.entry.event {
            let (last_seq, last, root) = (last.entry.seq, last.hash, Some(seal.root));
            let mut sealed = LogRecorded { root, ..LogRecorded::new(log, first, last_seq, last) };
            bend(&mut sealed);
            recorded.push(sealed);
        }
        let drafts = recorded.into_iter().map(|recorded| {
            let about = Subject::from(chain.run.clone());
            let edits = vec![(format::log_path(&chain.run), Edit::Bytes(recorded.index(&about).canonical()))];
            Draft { about, event: Event::LogRecorded(recorded), bytes: Vec::new(), edits }
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
        let report = verify(&self.store, &run, &format::run_ref(&run), options).unwrap();
        for row in report.rows.iter().filter(|row| row.state == State::Failed) {
            let belong = row.codes.iter().all(|code| code.row() == row.name);
            assert!(!row.codes.is_empty() && belong, "{}: {:?}", row.name, row.codes);
        }
        report
    }

    /// Moves the run's ref, and makes sure that it moved.
    pub(crate) fn point_at(&self, oid: Oid) {
        refs::set(&self.store, "refs/handoff/runs/handoff-dag-1", oid).unwrap();
    }
}

/// Writes entries as they are, each on the one before, signed; nothing is put right.
pub(crate) fn relink(forge: &Forge, entries: &[(Entry, Oid)]) -> Oid {
    let mut parents: Vec<Oid> = Vec::new();
    for (entry, tree) in entries {
        let signature = forge.signer.sign(&codec::payload(entry, *tree, &parents)).unwrap();
        let raw = codec::signed(entry, *tree, &parents, &signature);
        parents = vec![forge.store.write(gix::objs::Kind::Commit, &raw).unwrap()];
    }
    parents[0]
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

pub(crate) fn blob(forge: &Forge, bytes: &[u8]) -> Oid {
    forge.store.write_blob(bytes).unwrap()
}

/// Writes a blob and returns its names.
pub(crate) fn store_product(forge: &Forge, bytes: &[u8]) -> Product {
    let product = forge.store.compute_product(bytes).unwrap();
    assert_eq!(blob(forge, bytes), product.oid);
    product
}

/// The name of a blob that is not there.
pub(crate) fn gone(forge: &Forge) -> Oid {
    forge.store.compute_product(b"written nowhere\n").unwrap().oid
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
    let mut command = spawned("git".as_ref(), &std::env::var_os("PATH").unwrap());
    // Each commit starts another program otherwise.
    command.args(["-c", "maintenance.auto=false"]).args(args).current_dir(dir).env_clear();
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

/// The row of a report with a name from a table of the test.
#[track_caller]
pub(crate) fn row_of<'a>(report: &'a Report, name: &str) -> &'a Row {
    report.rows.iter().find(|row| row.name == name).expect("a report has this row")
}

/// Asserts that a row fails, and compares the code and place of its first finding, such as
/// `tree-holds, entry 1, path documents/notes`. A finding without a code has the code `none`.
#[track_caller]
pub(crate) fn assert_fails(report: &Report, row: &str, expected: &str) {
    let found = failed(report, row).findings.first().map(|finding| {
        let place = [
            finding.entry.map(|entry| format!("entry {entry}")),
            finding.item.as_ref().map(|item| format!("item {item}")),
            finding.path.as_ref().map(|path| format!("path {path}")),
        ];
        let code = finding.code.map_or("none", Code::word).to_owned();
        [Some(code)].into_iter().chain(place).flatten().collect::<Vec<_>>().join(", ")
    });
    assert_eq!(found.as_deref(), Some(expected), "{row}: {}", report.to_text(false));
}

/// Asserts that a row fails, and compares the whole text of its first finding, with `…` for each
/// hash. This is for codes that several faults share.
#[track_caller]
pub(crate) fn assert_says(report: &Report, row: &str, expected: &str) {
    let found = failed(report, row).findings.first().map(|finding| without_hashes(&finding.text));
    assert_eq!(found.as_deref(), Some(expected), "{row}: {}", report.to_text(false));
}

/// Returns a row that must have failed.
#[track_caller]
fn failed<'a>(report: &'a Report, row: &str) -> &'a Row {
    let row = row_of(report, row);
    assert!(row.state == State::Failed && !report.intact, "wanted ✗ {}, got\n{}", row.name, report.to_text(false));
    row
}

/// All rows hold.
#[track_caller]
pub(crate) fn assert_intact(report: &Report) {
    assert!(report.intact && report.rows.iter().all(|row| row.state == State::Ok), "{}", report.to_text(false));
}
