//! The modules of the second implementation: short files whose imports go one way, and that can be
//! joined to the script of a page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The most lines of a module.
const MOST_LINES: usize = 400;
/// The most files of a folder.
const MOST_FILES: usize = 20;

/// Returns each module below `src/report/verify`, with its text.
fn modules() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/verify");
    let mut folders = vec![root.clone()];
    let mut modules = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
                modules.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    modules
}

/// Returns the folder of a module, empty for the root.
fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the imports of a module, each on one line.
fn import_lines(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        if line.starts_with("import ") {
            found.push(line.to_owned());
        } else if is_open {
            found.last_mut().unwrap().push_str(line);
        } else {
            continue;
        }
        is_open = !line.ends_with(';');
    }
    found
}

/// Returns the paths that a module imports: modules by their names, others as they are.
fn imports(name: &str, text: &str) -> Vec<String> {
    let lines = import_lines(text);
    let paths = lines.iter().map(|line| line.split_once("} from '").unwrap().1.strip_suffix("';").unwrap());
    let imported = paths.map(|path| {
        if !path.starts_with('.') {
            return path.to_owned();
        }
        let mut parts: Vec<&str> = folder_of(name).split('/').filter(|part| !part.is_empty()).collect();
        for part in path.split('/').filter(|part| *part != ".") {
            if part == ".." {
                assert!(parts.pop().is_some(), "{name} imports {path}, outside of the folder");
            } else {
                parts.push(part);
            }
        }
        parts.join("/")
    });
    imported.collect()
}

/// Returns the quoted names between two marks of a file.
fn list(file: &str, start: &str, end: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let (_, rest) = text.split_once(start).unwrap();
    let names = rest.split_once(end).unwrap().0.lines().map(|line| line.trim().trim_end_matches(','));
    names.filter(|line| !line.is_empty()).map(|line| line.trim_matches(['\'', '"']).to_owned()).collect()
}

/// Returns the modules of the script in their order.
fn script() -> Vec<String> {
    list("src/report/script.rs", "= modules![\n", "\n];")
}

/// Returns the top-level names that a module declares.
fn declared(text: &str) -> Vec<&str> {
    let words = ["const ", "let ", "async function ", "function* ", "function ", "class "];
    let declaring = text.lines().map(|line| line.strip_prefix("export ").unwrap_or(line));
    let names = declaring.filter_map(|line| words.iter().find_map(|word| line.strip_prefix(word)));
    let end = |rest: &str| rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    names.filter(|rest| !rest.starts_with(['{', '['])).map(|rest| &rest[..end(rest)]).collect()
}

#[test]
fn modules_and_folders_are_small() {
    let modules = modules();
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, text) in &modules {
        let lines = text.lines().count();
        assert!(lines <= MOST_LINES, "{name} has {lines} lines, more than {MOST_LINES}");
        assert!(text.starts_with("// "), "{name} does not start with a comment that says what it is for");
        *sizes.entry(folder_of(name)).or_default() += 1;
    }
    assert!(sizes.len() > 5, "{sizes:?}");
    assert!(sizes.values().all(|size| *size <= MOST_FILES), "{sizes:?}");
}

#[test]
fn both_lists_name_every_module_of_the_script() {
    let script = script();
    assert_eq!(script, list("src/report/verify/node/script.mjs", "const modules = [\n", "\n];"));
    let modules = modules();
    let expected: BTreeSet<&str> =
        modules.keys().map(String::as_str).filter(|name| folder_of(name) != "node").collect();
    assert_eq!(script.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected);
    assert_eq!(script.len(), expected.len(), "no module is there twice");
}

#[test]
fn modules_import_only_those_above_them() {
    let (modules, script) = (modules(), script());
    let mut count = 0;
    for (at, name) in script.iter().enumerate() {
        for import in imports(name, &modules[name]) {
            assert!(script[..at].contains(&import), "{name} imports {import}, which is not above it");
            count += 1;
        }
    }
    assert!(count > script.len(), "imports are found: {count}");
}

#[test]
fn modules_for_node_import_in_no_circle() {
    let modules = modules();
    let own = |name: &str| -> Vec<String> {
        imports(name, &modules[name]).into_iter().filter(|import| folder_of(import) == "node").collect()
    };
    let mut open: Vec<&String> = modules.keys().filter(|name| folder_of(name) == "node").collect();
    while !open.is_empty() {
        let (waiting, free): (Vec<&String>, Vec<&String>) =
            open.iter().partition(|name| own(name).iter().any(|import| open.contains(&import)));
        assert!(!free.is_empty(), "these import each other: {waiting:?}");
        open = waiting;
    }
}

#[test]
fn modules_can_share_one_scope() {
    let modules = modules();
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, text) in &modules {
        for declared in declared(text) {
            let other = owners.insert(declared, name);
            assert!(other.is_none(), "{declared} is in {name} and in {}", other.unwrap_or_default());
        }
    }
    assert!(owners.len() > 500 && owners.contains_key("Handoff"), "names are found: {}", owners.len());
}

/// The two functions that join modules leave out whole imports, and the word `export`.
#[test]
fn modules_have_only_the_syntax_that_joining_leaves_out() {
    let modules = modules();
    for name in script() {
        let text = &modules[&name];
        for import in import_lines(text) {
            let names = import
                .strip_prefix("import {")
                .and_then(|rest| rest.split_once("} from './").or_else(|| rest.split_once("} from '../")))
                .unwrap_or_else(|| panic!("{name}: {import}"))
                .0;
            assert!(!names.contains(" as "), "{name} renames what it imports, which the script cannot: {import}");
        }
        for line in text.lines().filter(|line| line.starts_with("export ")) {
            assert_eq!(declared(line).len(), 1, "{name} exports other than by a declaration: {line}");
        }
    }
}
