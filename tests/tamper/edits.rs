//! Every field of every kind of entry changed, and taken out; every field of the header too.

use git_handoff::git::codec;
use git_handoff::ledger::chain::Link;
use git_handoff::ledger::merkle;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::driver::DriverId;
use git_handoff::model::entry::{Again, Entry, Event, Outcome};
use git_handoff::model::format;
use git_handoff::model::time::Moment;
use gix::objs::Kind;
use serde_json::Value;

use super::run::{End, Scene, failing};
use super::stories::{Found, POSSIBLE};
use super::{everything, table};
use crate::common::chain_builder::BuiltChain;

/// The header's fields, which are changed by themselves below.
const HEADER: [&str; 8] = ["v", "kind", "run", "seq", "at", "actor", "prev", "clock"];

#[test]
fn every_field_of_every_kind() {
    let mut found = Found::default();
    let mut malformed = Vec::new();
    let mut visited: Vec<String> = Vec::new();
    let mut count = 0;
    for end in [End::Closed, End::Cancelled] {
        let scene = Scene::new(end);
        for (at, link) in scene.chain.links.iter().enumerate() {
            let name = name(&link.entry.event);
            if visited.contains(&name) {
                continue;
            }
            visited.push(name.clone());
            let honest: Value = serde_json::from_slice(&link.entry.canonical()).unwrap();
            let (mut tried, mut rows) = (0, Vec::<String>::new());
            for path in leaves(&honest) {
                for (how, bent) in [("", changed(&honest, &path)), (", taken out", taken_out(&honest, &path))] {
                    let bytes = format::entry_text(&bent);
                    if let Ok(entry) = Entry::parse(&bytes) {
                        count += 1;
                        // Every sixth of them, or all.
                        if count % 6 != 0 && !everything() {
                            continue;
                        }
                        let mut tale = scene.tale();
                        let what = format!("{name}: `{}`{how}", path.trim_start_matches('/'));
                        if let Event::RunSealed(_) = entry.event {
                            found.tell_false_seal(&scene, &what, &entry.event);
                            continue;
                        }
                        tale[at] = entry.event;
                        found.tell(&scene, &what, &tale);
                    } else {
                        scene.keep_log();
                        scene.forge.point_at(broken(&scene, at, &bytes));
                        let report = scene.forge.verify();
                        let failed = failing(&report);
                        assert!(failed.contains("chain"), "{name} {path}{how}:\n{}", report.to_text(false));
                        tried += 1;
                        if !rows.contains(&failed) {
                            rows.push(failed);
                        }
                    }
                }
            }
            malformed.push(vec![name, tried.to_string(), rows.join("; or ")]);
        }
    }
    malformed.retain(|row| row[1] != "0");
    if everything() {
        found.check("tamper_fields", "changed");
    } else {
        found.check_sample("tamper_fields");
    }
    table::check("tamper_malformed", &["an entry that is none any more", "tried", "rows that fail"], &malformed);
}

fn name(event: &Event) -> String {
    match event {
        Event::ItemReconciled(e) if e.status == Outcome::Done => "`item.reconciled` (done)".to_owned(),
        Event::ItemReconciled(_) => "`item.reconciled` (failed)".to_owned(),
        Event::ItemRequeued(e) if e.reason == Again::Lost => "`item.requeued` (lost)".to_owned(),
        Event::ItemFired(e) if e.input_refs.is_empty() => "`item.fired`".to_owned(),
        Event::ItemFired(_) => "`item.fired` (with needs)".to_owned(),
        other => format!("`{}`", other.kind()),
    }
}

/// The JSON pointers of all values that are no objects with something in them, without the header.
pub(super) fn leaves(value: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, out: &mut Vec<String>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, child) in map {
                    walk(child, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), out);
                }
            }
            _ => out.push(at.to_owned()),
        }
    }
    let mut out = Vec::new();
    walk(value, "", &mut out);
    out.retain(|path| !HEADER.contains(&path.trim_start_matches('/')));
    out
}

pub(crate) fn changed(honest: &Value, path: &str) -> Value {
    let mut bent = honest.clone();
    let value = bent.pointer_mut(path).unwrap();
    *value = match &*value {
        Value::Bool(yes) => (!yes).into(),
        Value::Number(number) => (number.as_i64().unwrap() + 1).into(),
        Value::Array(_) => serde_json::json!([]),
        Value::Object(_) => serde_json::json!({ "more": Digest::compute(b"more") }),
        Value::Null => unreachable!("entries hold no null"),
        Value::String(text) => match text.as_str() {
            "make" | "@artifacts" | "@documents" => "other".into(),
            "use" | "break" | "after" | "never" => "make".into(),
            "done" => "failed".into(),
            "failed" => "done".into(),
            "failure" => "crash".into(),
            "crash" => "operator".into(),
            "command" => "self".into(),
            "patch" => "output".into(),
            "silent" => "told".into(),
            "sha1" => "sha256".into(),
            text if DriverId::parse(text).is_some() => "0".repeat(text.len()).into(),
            text if text.starts_with("sha256:") => Digest::compute(b"another").to_string().into(),
            text if text.parse::<Moment>().is_ok() => "2026-06-05T00:00:00.000Z".into(),
            text if text.parse::<Oid>().is_ok() => "1".repeat(text.len()).into(),
            text => format!("{text}x").into(),
        },
    };
    bent
}

pub(crate) fn taken_out(honest: &Value, path: &str) -> Value {
    let mut bent = honest.clone();
    let (parent, key) = path.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    bent.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(&key);
    bent
}

/// Puts bytes that are no entry in the place of one, signed, with everything after them linked to
/// them.
fn broken(scene: &Scene, at: usize, body: &[u8]) -> Oid {
    let links = &scene.chain.links;
    let mut parents: Vec<Oid> = at.checked_sub(1).map(|before| links[before].commit).into_iter().collect();
    let honest = codec::payload(&links[at].entry, links[at].tree, &parents);
    let length = honest.len() - links[at].entry.canonical().len() - 1;
    let payload = [&honest[..length], body, b"\n"].concat();
    let signature = scene.forge.signer.sign(&payload).unwrap().replace('\n', "\n ");
    let head = payload.windows(2).position(|two| two == b"\n\n").unwrap() + 1;
    let raw = [&payload[..head], format!("gpgsig {signature}\n").as_bytes(), &payload[head..]].concat();
    parents = vec![scene.forge.store.write(Kind::Commit, &raw).unwrap()];
    let mut prev = format::leaf_hash(body);
    for link in &links[at + 1..] {
        let entry = Entry { prev: Some(prev), ..link.entry.clone() };
        prev = entry.hash();
        parents = vec![commit(scene, &entry, link.tree, &parents)];
    }
    parents[0]
}

fn commit(scene: &Scene, entry: &Entry, tree: Oid, parents: &[Oid]) -> Oid {
    let signature = scene.forge.signer.sign(&codec::payload(entry, tree, parents)).unwrap();
    scene.forge.store.write(Kind::Commit, &codec::signed(entry, tree, parents, &signature)).unwrap()
}

/// Bends the entries themselves, links them truly except for what `bend` says of `prev`, and seals
/// them truly.
fn relink(scene: &Scene, bend: impl Fn(usize, &mut Entry)) -> BuiltChain {
    let mut links: Vec<Link> = Vec::new();
    for (at, link) in scene.chain.links.iter().enumerate() {
        let mut entry = link.entry.clone();
        entry.prev = links.last().map(|previous| previous.hash);
        if let Event::RunSealed(seal) = &mut entry.event {
            seal.root = merkle::root(links.iter().map(|earlier| earlier.hash));
        }
        bend(at, &mut entry);
        let parents: Vec<Oid> = links.last().map(|parent| parent.commit).into_iter().collect();
        let commit = commit(scene, &entry, link.tree, &parents);
        links.push(Link { commit, tree: link.tree, hash: entry.hash(), entry });
    }
    scene.forge.point_at(links.last().unwrap().commit);
    BuiltChain { run: scene.chain.run.clone(), head: scene.chain.head.clone(), links }
}

type Bend<'a> = &'a dyn Fn(usize, &mut Entry);

#[test]
fn every_field_of_the_header() {
    let scene = Scene::new(End::Closed);
    let last = scene.chain.links.len() - 1;
    let hour = 3_600_000;
    let bends: [(&str, Bend<'_>); 11] = [
        ("`seq` of one entry", &|at, entry| entry.seq += u64::from(at == 5)),
        ("`seq` of all entries", &|_, entry| entry.seq += 1),
        ("`prev` of one entry", &|at, entry| {
            if at == 5 {
                entry.prev = Some(Digest::compute(b"another"));
            }
        }),
        ("`prev` in entry 0", &|at, entry| {
            if at == 0 {
                entry.prev = Some(Digest::compute(b"another"));
            }
        }),
        ("the clock turned back at one entry", &|at, entry| {
            if at == 5 {
                entry.at = Moment::from_millis(entry.at.millis() - hour);
            }
        }),
        ("one entry dated after the next", &|at, entry| {
            if at == 5 {
                entry.at = Moment::from_millis(entry.at.millis() + hour);
            }
        }),
        ("all entries dated an hour back", &|_, entry| entry.at = Moment::from_millis(entry.at.millis() - hour)),
        ("`actor` of one entry", &|at, entry| {
            if at == 5 {
                entry.actor = "human:eve".to_owned();
            }
        }),
        ("`clock` of the seal", &|at, entry| entry.pinned &= at != last),
        ("`run` of one entry", &|at, entry| {
            if at == 5 {
                entry.about = "handoff-dag-2".parse::<git_handoff::model::name::RunId>().unwrap().into();
            }
        }),
        ("`run` of all entries", &|_, entry| {
            entry.about = "handoff-dag-2".parse::<git_handoff::model::name::RunId>().unwrap().into();
        }),
    ];
    let mut rows = Vec::new();
    for (what, bend) in bends {
        scene.keep_log();
        let chain = relink(&scene, bend);
        let report = scene.forge.verify();
        assert!(!report.intact, "{what}, against the log that was kept:\n{}", report.to_text(false));
        scene.rewrite_log(&chain, &scene.forge.signer);
        let renewed = scene.forge.verify();
        let right = if renewed.intact { POSSIBLE.to_owned() } else { failing(&renewed) };
        rows.push(vec![what.to_owned(), right, failing(&report)]);
    }
    table::check("tamper_header", &["changed", "right key, log rewritten", "right key, log as it was"], &rows);
}
