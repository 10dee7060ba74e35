//! Every consumer of a run's data, applied to runs that must not be trusted.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use git_handoff::git::codec;
use git_handoff::git::refs;
use git_handoff::git::store::Store;
use git_handoff::ledger::chain::{self, Link};
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Oid;
use git_handoff::model::format;
use git_handoff::run::query::VerifiedRun;
use git_handoff::verify::{AtHand, Barred, Gate, Logs, Options};
use gix::objs::Kind;
use serde_json::{Value, json};

use super::run::{End, RUN, Scene};
use super::table;
use crate::common::forge::key;
use crate::common::{Environment, Output, answers, program_path};

const REF: &str = "refs/handoff/runs/r";

/// The operations on a run, by the table's names.
const CONSUMERS: [(&str, &[&str]); 9] = [
    ("`cat` patch", &["cat", "r/make:patch"]),
    ("`cat` output", &["cat", "r/make:report.md"]),
    ("`cat` plan", &["cat", "r:plan.json"]),
    ("`cat` manifest", &["cat", "r/make:manifest"]),
    ("`doc get`", &["doc", "get", "r", "notes"]),
    ("`doc diff`", &["doc", "diff", "r", "notes"]),
    ("`apply`", &["apply", "r", "--branch", "taken"]),
    ("`export`", &["export", "r", "--format", "in-toto"]),
    ("`packet auto`", &["packet", "auto", "--run", "r"]),
];

/// Refused whatever the caller's options.
const BELIEVERS: [&str; 4] = ["facts of a packet", "`check` of a document", "MCP `doc_get`", "MCP `packet_check`"];

/// A folder of repositories; every forgery is made in a copy of the honest one.
struct Runs {
    env: Environment,
}

impl Runs {
    fn new() -> Self {
        let runs = Self { env: Environment::empty() };
        runs.record("honest", "one");
        let packet = json!({
            "objective": "Look at the report", "completed": ["made report.md"], "next_action": "Run the scorer on report.md",
            "updated_at": "2026-06-04T02:00:00Z", "run": "r", "items": ["make"], "documents": ["notes"],
        });
        runs.env.write("facts.json", &packet.to_string());
        let owner = runs.env.handoff_in("honest", ["key"]).success();
        let known = owner.split_once(' ').unwrap().1.trim();
        runs.env.write("revoked", &format!("{}\n", &known[known.find("ssh-ed25519").unwrap()..]));
        runs.env.write("nobody", "# nobody\n");
        runs
    }

    /// Records a run with a patch, an output and a document of two revisions, and a packet among
    /// its documents.
    fn record(&self, dir: &str, word: &str) {
        let env = &self.env;
        env.write(&format!("{dir}/main.txt"), "1\n2\n3\n");
        env.git_in(dir, ["init", "--quiet"]).success();
        env.git_in(dir, ["add", "."]).success();
        env.git_in(dir, ["commit", "--quiet", "--message", "Start"]).success();
        let make = format!("echo {word} >> main.txt; echo {word} > outputs/report.md");
        let item = json!({ "id": "make", "executor": "command", "inputs": { "command": make } });
        env.write("plan.json", &json!({ "id": "r", "items": [item] }).to_string());
        env.handoff_in(dir, ["submit", "../plan.json"]).success();
        for text in ["first\n", "second\n"] {
            env.write("text", text);
            env.handoff_in(dir, ["doc", "put", "r", "notes", "../text"]).success();
        }
        let packet = json!({
            "objective": "Score the report", "completed": ["made report.md"], "next_action": "Run the scorer on report.md",
            "unresolved": [], "updated_at": "2026-06-04T02:00:00Z",
        });
        env.write("text", &packet.to_string());
        env.handoff_in(dir, ["doc", "put", "r", "packet", "../text"]).success();
        env.handoff_in(dir, ["run", "r"]).success();
    }

    /// Copies the honest repository.
    fn copy(&self, dir: &str) -> Copy<'_> {
        self.env.shell(".", &format!("cp -R honest {dir}")).success();
        Copy { env: &self.env, dir: dir.to_owned() }
    }
}

/// A repository to forge in.
struct Copy<'a> {
    env: &'a Environment,
    dir: String,
}

impl Copy<'_> {
    fn path(&self) -> PathBuf {
        self.env.path().join(&self.dir)
    }

    fn git(&self, args: &[&str]) -> String {
        self.env.git_in(&self.dir, args).success().trim().to_owned()
    }

    fn store(&self) -> Store {
        Store::discover(&self.path()).unwrap()
    }

    fn links(&self) -> Vec<Link> {
        chain::read(&self.store(), REF).unwrap().unwrap().1
    }

    /// Puts another commit in the place of the last entry's.
    fn exchange(&self, commit: impl FnOnce(&Link, &[Oid]) -> Vec<u8>) {
        let store = self.store();
        let links = self.links();
        let parents = [links[links.len() - 2].commit];
        let oid = store.write(Kind::Commit, &commit(links.last().unwrap(), &parents)).unwrap();
        refs::set(&store, REF, oid).unwrap();
    }

    /// Exchanges the bytes of a file for others, under its object's name. The file is that of the
    /// latest entry whose subject begins like this.
    fn damage(&self, subject: &str, path: &str) {
        crate::common::loosen(&self.path());
        let oid = self.git(&["rev-parse", &format!("{REF}^{{/^{subject}}}:{path}")]);
        let other = self.store().write_blob(format!("damaged {path}\n").as_bytes()).unwrap().to_string();
        let file = |hex: &str| self.path().join(".git/objects").join(&hex[..2]).join(&hex[2..]);
        fs::remove_file(file(&oid)).unwrap();
        fs::copy(file(&other), file(&oid)).unwrap();
    }

    fn delete_logs(&self) {
        for name in self.git(&["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).lines() {
            self.git(&["update-ref", "-d", name]);
        }
    }

    /// Runs every consumer; each may print only what it has verified.
    fn ask_all(&self, more: &[&str]) -> Vec<String> {
        let mut cells: Vec<String> = CONSUMERS
            .iter()
            .map(|(_, command)| {
                let output = self.env.handoff_in(&self.dir, [&["--json"], *command, more].concat());
                let cell = cell(&output);
                let is_applied = !self.git(&["branch", "--list", "taken"]).is_empty();
                assert!(command[0] != "apply" || is_applied == cell.starts_with('t'), "{output}");
                cell
            })
            .collect();
        if more.is_empty() {
            cells.push(self.facts());
            cells.push(self.document());
            cells.push(self.tool("doc_get", &json!({ "run": "r", "name": "notes" })));
            cells.push(self.tool("packet_check", &json!({ "packet": packet(&self.path()) })));
        } else {
            cells.extend(BELIEVERS.iter().map(|_| "–".to_owned()));
        }
        cells
    }

    fn facts(&self) -> String {
        let output = self.env.handoff_in(&self.dir, ["--json", "check", "../facts.json"]);
        fact(&serde_json::from_str(&output.stdout).unwrap())
    }

    fn document(&self) -> String {
        let output = self.env.handoff_in(&self.dir, ["--json", "check", "r:documents/packet"]);
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        if value["classification"] == "critical" { "✗ critical".to_owned() } else { "taken".to_owned() }
    }

    fn tool(&self, tool: &str, arguments: &Value) -> String {
        let greeting =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let lines = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}),
        ];
        let mut command = self.env.command(program_path(), &self.dir);
        let command = command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        lines.iter().for_each(|line| writeln!(to, "{line}").unwrap());
        drop(to);
        let stdout = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let answer: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
        answers::hold_tool(tool, &answer["result"]);
        let content = &answer["result"]["structuredContent"];
        match (answer["result"]["isError"].as_bool(), tool) {
            (Some(true), _) => format!("✗ {}", content["code"].as_str().unwrap()),
            (_, "packet_check") => fact(content),
            _ => "taken".to_owned(),
        }
    }
}

/// Returns what a command that takes something came to; what is refused prints nothing.
fn cell(output: &Output) -> String {
    assert!(!output.stdout.contains("damaged"), "{output}");
    let warned = output.stderr.lines().any(|line| line.starts_with("warning: the run \"r\" is"));
    if output.status == Some(0) {
        return if warned { "taken, with a warning".to_owned() } else { "taken".to_owned() };
    }
    assert_eq!(output.stdout, "", "{output}");
    let error: Value = serde_json::from_str(output.stderr.lines().last().unwrap()).unwrap();
    assert!(error["hint"].as_str().is_some_and(|hint| hint.starts_with("git handoff verify")), "{output}");
    format!("✗ {}", error["code"].as_str().unwrap())
}

fn packet(repository: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(repository.parent().unwrap().join("facts.json")).unwrap()).unwrap()
}

fn fact(report: &Value) -> String {
    let facts = &report["checks"]["facts"];
    let detail = facts["detail"].as_str().unwrap();
    match facts["ok"].as_bool() {
        Some(true) if detail.contains("not known to you") => "✅, with a remark".to_owned(),
        Some(true) => "✅".to_owned(),
        _ => {
            assert!(detail.contains("the run \"r\""), "{report}");
            "❌".to_owned()
        }
    }
}

/// Always refused: forged with file access, or by another key.
fn forged(runs: &Runs, rows: &mut Vec<Vec<String>>) {
    let env = &runs.env;
    let stranger = |copy: &Copy<'_>| -> Signer { key(&copy.path(), 9) };
    let mut at = 0;
    let mut tried = |what: &str, forge: &dyn Fn(&Copy<'_>)| {
        at += 1;
        let copy = runs.copy(&format!("forged-{at}"));
        forge(&copy);
        let cells = copy.ask_all(&[]);
        assert!(cells.iter().any(|cell| !cell.starts_with(['t', '✅'])), "not caught: {what}");
        rows.push(std::iter::once(what.to_owned()).chain(cells).collect());
    };
    tried("a byte of an entry changed", &|copy| {
        copy.exchange(|last, parents| {
            let store = copy.store();
            let (_, raw) = store.read(last.commit).unwrap();
            let text = String::from_utf8(raw).unwrap();
            assert!(parents.len() == 1 && text.contains("human:ada"));
            text.replacen("\"actor\": \"human:ada\"", "\"actor\": \"human:eve\"", 1).into_bytes()
        });
    });
    tried("the last entry not signed", &|copy| {
        copy.exchange(|last, parents| codec::payload(&last.entry, last.tree, parents));
    });
    tried("the last entry signed by a key that is no writer's", &|copy| {
        copy.exchange(|last, parents| {
            let signature = stranger(copy).sign(&codec::payload(&last.entry, last.tree, parents)).unwrap();
            codec::signed(&last.entry, last.tree, parents, &signature)
        });
    });
    tried("the ref moved back to an earlier entry", &|copy| {
        copy.git(&["update-ref", REF, &format!("{REF}~1")]);
    });
    tried("another run in its place, by the same key, that the log contradicts", &|copy| {
        if !env.path().join("other").exists() {
            runs.record("other", "two");
        }
        copy.git(&["fetch", "--quiet", "../other", &format!("+{REF}:{REF}")]);
    });
    tried("a manifest damaged", &|copy| copy.damage("item.fired make ", "manifest.json"));
    tried("the plan damaged", &|copy| copy.damage("run.submitted", "plan.json"));
    tried("the products damaged", &|copy| {
        copy.damage("item.reconciled make ", "patch");
        copy.damage("item.reconciled make ", "outputs/report.md");
        copy.damage("document.written notes", "documents/notes");
        copy.damage("document.written packet", "documents/packet");
    });
    tried("its key revoked", &|copy| {
        copy.git(&["config", "handoff.revoked", "../revoked"]);
    });
    tried("its key not among the configured signers", &|copy| {
        copy.git(&["config", "handoff.signers", "../nobody"]);
    });
}

#[test]
fn every_consumer_against_every_kind_of_run() {
    let runs = Runs::new();
    let mut rows = Vec::new();
    forged(&runs, &mut rows);
    let insist = ["--accept-untrusted"];
    let mut more = |what: &str, dir: &str, arguments: &[&str], change: &dyn Fn(&Copy<'_>)| {
        let copy = runs.copy(dir);
        change(&copy);
        rows.push(std::iter::once(what.to_owned()).chain(copy.ask_all(arguments)).collect());
    };
    more("its key revoked; `--accept-untrusted`", "revoked-accepted", &insist, &|copy| {
        copy.git(&["config", "handoff.revoked", "../revoked"]);
    });
    more("its key not among the signers; `--accept-untrusted`", "unknown-accepted", &insist, &|copy| {
        copy.git(&["config", "handoff.signers", "../nobody"]);
    });
    more("its key revoked, and the ref moved back; `--accept-untrusted`", "both-accepted", &insist, &|copy| {
        copy.git(&["config", "handoff.revoked", "../revoked"]);
        copy.git(&["update-ref", REF, &format!("{REF}~1")]);
    });
    more("nothing", "nothing", &[], &|_| {});
    more("nothing; by a key that is unknown here, and no signers are configured", "stranger", &[], &|copy| {
        key(&copy.path(), 9);
        copy.git(&["config", "handoff.signingKey", copy.path().join(".git/key-9").to_str().unwrap()]);
    });
    more("nothing; in no log", "unlogged", &[], &|copy| {
        copy.delete_logs();
    });
    more("nothing; not sealed", "open", &[], &|copy| {
        copy.delete_logs();
        copy.git(&["update-ref", REF, &format!("{REF}~1")]);
    });
    let head: Vec<&str> =
        ["what was done"].into_iter().chain(CONSUMERS.map(|(name, _)| name)).chain(BELIEVERS).collect();
    table::check("tamper_consumers", &head, &rows);
}

#[test]
fn commands_read_the_verified_head() {
    let scene = Scene::new(End::Closed);
    let store = &scene.forge.store;
    let logs = Logs::read(store).unwrap();
    let (at_hand, options) = (AtHand::logs(&logs), scene.forge.options());
    let gate = Gate { store, at_hand: &at_hand, options: &options, accept_untrusted: false };
    let links = &scene.chain.links;
    let admitted = gate.admit(&scene.chain.run, RUN).unwrap();
    assert_eq!(
        (admitted.entries.last().unwrap().commit, admitted.cautions.as_slice()),
        (links.last().unwrap().commit, &[][..])
    );
    for elsewhere in [links[3].commit, scene.forge.base] {
        scene.forge.point_at(elsewhere);
        let vetted = VerifiedRun::read(store, &admitted).unwrap();
        assert_eq!(
            (vetted.links.len(), vetted.head.commit),
            (links.len(), Some(admitted.entries.last().unwrap().commit))
        );
        assert!(matches!(gate.admit(&scene.chain.run, RUN), Err(Barred::Tampered { .. })));
    }
}

#[test]
fn a_product_that_two_entries_name_differently_is_not_handed_over() {
    let scene = Scene::new(End::Closed);
    let store = &scene.forge.store;
    let logs = Logs::read(store).unwrap();
    let (at_hand, options) = (AtHand::logs(&logs), Options::default());
    let gate = Gate { store, at_hand: &at_hand, options: &options, accept_untrusted: false };
    let admitted = gate.admit(&scene.chain.run, RUN).unwrap();
    assert_eq!(admitted.cautions.len(), 1, "{:?}", admitted.cautions);
    let vetted = VerifiedRun::read(store, &admitted).unwrap();
    let patch = vetted.blob(
        &vetted.state.items[vetted.state.graph.position(&"make".parse().unwrap()).unwrap()].products
            [&"patch".parse().unwrap()],
    );
    assert_eq!(patch.read(store).unwrap(), b"diff make\n");
    let other = git_handoff::model::digest::Digest::compute(b"something else\n");
    assert!(patch.that_is(other).read(store).is_err());
    assert!(format::run_ref(&scene.chain.run) == RUN);
}

#[test]
fn a_large_product_leaves_only_if_every_byte_of_it_is_right() {
    let runs = Runs::new();
    let copy = runs.copy("large");
    let make = "head -c 6000000 /dev/zero > outputs/large";
    let item = json!({ "id": "make", "executor": "command", "inputs": { "command": make } });
    runs.env.write("plan.json", &json!({ "id": "large", "items": [item] }).to_string());
    runs.env.handoff_in("large", ["run", "../plan.json"]).success();
    let cat = || runs.env.handoff_in("large", ["cat", "large/make:large"]);
    assert_eq!(cat().exit(0).raw, vec![0; 6_000_000]);
    let oid = copy.git(&["rev-parse", "refs/handoff/runs/large^{/item.reconciled make }:outputs/large"]);
    let mut bytes = vec![0; 6_000_000];
    bytes[5_999_999] = 1;
    let other = copy.store().write_blob(&bytes).unwrap().to_string();
    crate::common::loosen(&copy.path());
    let file = |hex: &str| copy.path().join(".git/objects").join(&hex[..2]).join(&hex[2..]);
    fs::remove_file(file(&oid)).unwrap();
    fs::copy(file(&other), file(&oid)).unwrap();
    let output = cat().exit(3);
    assert!(output.raw.is_empty(), "{}", output.stderr);
    insta::assert_snapshot!(output.stderr, @"
    error: object ea9460723fb9db2c9ecc76d3aa041907347b0beb is damaged: its bytes do not hash to its id
    hint: git handoff verify large
    ");
}
