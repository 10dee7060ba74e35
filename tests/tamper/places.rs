//! Every ref moved, deleted and pointed elsewhere, and everything by which git can be told to look
//! elsewhere.

use std::fs;
use std::path::Path;

use git_handoff::git::codec;
use git_handoff::git::refs;
use git_handoff::model::digest::Oid;
use git_handoff::model::entry::Entry;
use git_handoff::model::name::RunId;
use git_handoff::verify::{Error, verify};
use gix::objs::Kind;

use super::run::{End, RUN, Scene, failing, log_ref};
use super::table;
use crate::common::forge::{git, stock_git};

/// The change and the resulting verdict.
struct Tried {
    rows: Vec<Vec<String>>,
}

impl Tried {
    /// Verifies; what is done must be found, or must have no say at all.
    fn read(&mut self, scene: &Scene, what: &str) {
        let run = RunId::parse("handoff-dag-1").unwrap();
        let cells = match verify(&scene.forge.store, &run, RUN, &scene.forge.options()) {
            Ok(report) => {
                assert!(!report.intact, "not caught: {what}\n{}", report.to_text(false));
                vec![format!("`✗ {}`", report.headline), failing(&report)]
            }
            Err(Error::Vanished { .. }) => {
                vec!["error, exit 3".to_owned(), "the log holds a run whose ref is gone".to_owned()]
            }
            Err(error) => panic!("not caught: {what}: {error}"),
        };
        self.add(what, cells);
    }

    /// Verifies; what was done must not change a word of the report.
    fn no_say(&mut self, scene: &Scene, what: &str, before: &str) {
        assert_eq!(scene.forge.verify().to_text(false), before, "{what}");
        self.add(what, vec!["the same, word for word".to_owned(), "it has no say".to_owned()]);
    }

    fn add(&mut self, what: &str, cells: Vec<String>) {
        let row: Vec<String> = std::iter::once(what.to_owned()).chain(cells).collect();
        if !self.rows.contains(&row) {
            self.rows.push(row);
        }
    }
}

#[test]
fn every_place() {
    let scene = Scene::new(End::Closed);
    let mut tried = Tried { rows: Vec::new() };
    moved(&scene, &mut tried);
    elsewhere(&scene, &mut tried);
    try_alternates(&scene, &mut tried);
    table::check("tamper_places", &["what was done", "reads", "rows that fail"], &tried.rows);
}

/// The refs.
fn moved(scene: &Scene, tried: &mut Tried) {
    let forge = &scene.forge;
    let log = log_ref(forge);
    let links = &scene.chain.links;
    let tip = links.last().unwrap().commit;
    let blob = forge.store.write_blob(b"no commit\n").unwrap();
    for (name, of, honest) in
        [(RUN, "the run's ref", tip), (&log, "the log's ref", refs::read(&forge.store, &log).unwrap().unwrap())]
    {
        let file = forge.path().join(".git").join(name);
        let mut point = |what: &str, text: &str| {
            fs::write(&file, text).unwrap();
            tried.read(scene, &format!("{of} {what}"));
        };
        if name == RUN {
            for link in &links[..links.len() - 1] {
                point("moved back to an earlier entry", &format!("{}\n", link.commit));
            }
        } else {
            let first = forge.git(&["rev-list", "--max-parents=0", &log]);
            point("moved back to an earlier entry", &format!("{first}\n"));
            point("pointed at the run", &format!("{tip}\n"));
        }
        point("pointed at the base commit", &format!("{}\n", forge.base));
        point("pointed at a tree", &format!("{}\n", links[0].tree));
        point("pointed at a blob", &format!("{blob}\n"));
        point("pointed at nothing that is here", &format!("{}\n", "1".repeat(40)));
        point("made a symbolic one", "ref: refs/heads/main\n");
        point("filled with garbage", "garbage\n");
        point("emptied", "");
        fs::remove_file(&file).unwrap();
        tried.read(scene, &format!("{of} deleted"));
        refs::set(&forge.store, name, honest).unwrap();
    }
    fs::remove_file(forge.path().join(".git").join(RUN)).unwrap();
    forge.git(&["update-ref", &format!("refs/heads/{RUN}"), &tip.to_string()]);
    tried.read(scene, "the run's ref deleted, with a branch of that name");
    forge.git(&["update-ref", "-d", &format!("refs/heads/{RUN}")]);
    refs::set(&forge.store, RUN, tip).unwrap();
    // Two ends of the chain, merged into one by its own writer.
    let seal = links.last().unwrap();
    let before = &links[links.len() - 2];
    for (what, parents) in [
        ("the seal given a second parent, an earlier entry", vec![before.commit, links[3].commit]),
        ("the seal given a second parent, the other end of the chain", vec![before.commit, tip]),
        ("the seal given no parent", vec![]),
    ] {
        forge.point_at(commit(scene, &seal.entry, seal.tree, &parents));
        tried.read(scene, what);
    }
    forge.point_at(tip);
}

fn commit(scene: &Scene, entry: &Entry, tree: Oid, parents: &[Oid]) -> Oid {
    let signature = scene.forge.signer.sign(&codec::payload(entry, tree, parents)).unwrap();
    scene.forge.store.write(Kind::Commit, &codec::signed(entry, tree, parents, &signature)).unwrap()
}

/// Replace refs, grafts, a shallow file, a commit-graph.
fn elsewhere(scene: &Scene, tried: &mut Tried) {
    let forge = &scene.forge;
    let before = forge.verify().to_text(false);
    let links = &scene.chain.links;
    let dot_git = forge.path().join(".git");
    for link in links {
        let other = if link.commit == links[1].commit { &links[2] } else { &links[1] };
        forge.git(&["replace", "-f", &link.commit.to_string(), &other.commit.to_string()]);
    }
    tried.no_say(scene, "every commit replaced by another (`git replace`)", &before);
    let evil = forge.store.write_blob(b"evil\n").unwrap().to_string();
    for line in forge.git(&["--no-replace-objects", "rev-list", "--objects", "--filter=object:type=blob", RUN]).lines()
    {
        let id = line.split(' ').next().unwrap();
        if forge.store.read(id.parse().unwrap()).unwrap().0 == Kind::Blob {
            forge.git(&["replace", "-f", id, &evil]);
        }
    }
    tried.no_say(scene, "every blob replaced by another (`git replace`)", &before);
    fs::create_dir_all(dot_git.join("info")).unwrap();
    let grafts = links.iter().fold(String::new(), |lines, link| lines + &format!("{}\n", link.commit));
    fs::write(dot_git.join("info/grafts"), &grafts).unwrap();
    tried.no_say(scene, "every commit grafted to have no parent", &before);
    fs::write(dot_git.join("shallow"), &grafts).unwrap();
    tried.no_say(scene, "every commit made shallow", &before);
    fs::remove_file(dot_git.join("shallow")).unwrap();
    fs::remove_file(dot_git.join("info/grafts")).unwrap();
    for name in forge.git(&["--no-replace-objects", "for-each-ref", "--format=%(refname)", "refs/replace/"]).lines() {
        forge.git(&["--no-replace-objects", "update-ref", "-d", name]);
    }
    forge.git(&["commit-graph", "write", "--reachable"]);
    let graph = dot_git.join("objects/info/commit-graph");
    let mut bytes = fs::read(&graph).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].iter_mut().for_each(|byte| *byte ^= 0xff);
    fs::remove_file(&graph).unwrap();
    fs::write(&graph, bytes).unwrap();
    tried.no_say(scene, "the commit-graph falsified", &before);
    fs::remove_file(&graph).unwrap();
}

/// Objects that come from another repository's store.
fn try_alternates(scene: &Scene, tried: &mut Tried) {
    let forge = &scene.forge;
    crate::common::loosen(forge.path());
    let before = forge.verify().to_text(false);
    let other = forge.path().join(".git/beside.git");
    git(forge.path(), &["init", "-q", "--bare", other.to_str().unwrap()]);
    let objects = forge.path().join(".git/objects");
    let moved: Vec<_> =
        fs::read_dir(&objects).unwrap().map(|entry| entry.unwrap().path()).filter(|path| is_fan(path)).collect();
    for folder in &moved {
        fs::rename(folder, other.join("objects").join(folder.file_name().unwrap())).unwrap();
    }
    fs::create_dir_all(objects.join("info")).unwrap();
    fs::write(objects.join("info/alternates"), format!("{}\n", other.join("objects").display())).unwrap();
    let again = |record: &mut Tried, what: &str, caught: bool| {
        // The list of alternates is read when a repository is opened.
        let store = git_handoff::git::store::Store::discover(forge.path()).unwrap();
        let run = RunId::parse("handoff-dag-1").unwrap();
        let report = verify(&store, &run, RUN, &forge.options()).unwrap();
        if caught {
            assert!(!report.intact, "{what}");
            record.add(what, vec![format!("`✗ {}`", report.headline), failing(&report)]);
        } else {
            assert_eq!(report.to_text(false), before, "{what}");
            record.add(what, vec!["the same, word for word".to_owned(), "the objects are the same".to_owned()]);
        }
    };
    again(tried, "all objects moved to an alternate", false);
    let patch = forge.git(&["rev-parse", &format!("{RUN}^{{/item.reconciled make }}:patch")]);
    let file = other.join("objects").join(&patch[..2]).join(&patch[2..]);
    let evil = stock_git(forge.path(), &["rev-parse", &format!("{RUN}^{{/item.reconciled other }}:patch")]);
    let evil = String::from_utf8(evil.stdout).unwrap();
    let evil = other.join("objects").join(&evil[..2]).join(evil[2..].trim_end());
    let original = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    fs::copy(evil, &file).unwrap();
    again(tried, "a patch in the alternate exchanged for another", true);
    fs::remove_file(&file).unwrap();
    again(tried, "a patch gone from the alternate", true);
    fs::write(&file, original).unwrap();
    again(tried, "all put back", false);
}

fn is_fan(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.len() == 2)
}
