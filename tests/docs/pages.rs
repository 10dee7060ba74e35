//! The shape of the documents: how long they are, where they are listed, and what they link to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The most lines that README.md may have.
const README_LINES: usize = 150;

/// The most lines that a page outside of the reference may have.
const PAGE_LINES: usize = 400;

/// The most lines that a how-to page may have besides those that a test writes from data: it
/// answers one question.
const HOW_TO_LINES: usize = 150;

/// The most characters of a line of prose, link targets aside.
const COLUMNS: usize = 100;

#[test]
fn pages_are_short_enough_to_be_read() {
    let mut wrong = Vec::new();
    for page in pages() {
        let lines = text(&page).lines().count() - generated(&text(&page));
        let most = match page.as_str() {
            "README.md" => README_LINES,
            page if page.starts_with("docs/reference/") => continue,
            page if page.starts_with("docs/how-to/") => HOW_TO_LINES,
            _ => PAGE_LINES,
        };
        if lines > most {
            wrong.push(format!("{page} has {lines} lines, and may have {most}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the number of lines between marks such as `<!-- x: written from y -->` and `<!-- /x
/// -->`.
fn generated(page: &str) -> usize {
    let mut is_inside = false;
    let lines = page.lines().filter(|line| {
        is_inside = (is_inside || line.contains(": written from ")) && !line.starts_with("<!-- /");
        is_inside
    });
    lines.count()
}

#[test]
fn prose_wraps_at_a_hundred_columns() {
    let mut wrong = Vec::new();
    for page in pages() {
        for (number, line) in prose(&text(&page)) {
            let is_free = line.trim_start().starts_with('|') || line.starts_with("<!--");
            if !is_free && without_targets(line).chars().count() > COLUMNS {
                wrong.push(format!("{page}:{number}: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "lines of more than {COLUMNS} columns:\n{}", wrong.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let index = "docs/index.md";
    let linked: BTreeSet<String> =
        links(&text(index)).into_iter().filter_map(|(_, link)| resolve(index, &link).map(|(path, _)| path)).collect();
    let missing: Vec<String> =
        below("docs").into_iter().filter(|page| page != index && !linked.contains(page)).collect();
    assert!(missing.is_empty(), "{index} does not link to {missing:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for page in pages() {
        for (number, link) in links(&text(&page)) {
            let Some((target, fragment)) = resolve(&page, &link) else { continue };
            if !root().join(&target).exists() {
                wrong.push(format!("{page}:{number}: there is no {link}"));
            } else if let Some(fragment) = fragment {
                let anchors = known.entry(target.clone()).or_insert_with(|| anchors(&text(&target)));
                if !anchors.contains(&fragment) {
                    wrong.push(format!("{page}:{number}: {target} has no heading for #{fragment}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_that_sources_name_is_there() {
    let mut wrong = Vec::new();
    for folder in ["src", "tests", ".ci", "examples", "Cargo.toml"] {
        for path in files(&root().join(folder)) {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            // Strings of tests are samples as well: those of pages fail where they are opened.
            let comments_only = folder == "tests";
            for (number, line) in text.lines().enumerate() {
                if comments_only && !line.trim_start().starts_with("//") {
                    continue;
                }
                for page in page_names(line).filter(|page| !root().join(page).exists()) {
                    wrong.push(format!("{}:{}: there is no {page}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_source_that_pages_name_is_there() {
    let sources: Vec<PathBuf> = ["src", "tests"].iter().flat_map(|folder| files(&root().join(folder))).collect();
    let mut wrong = Vec::new();
    for page in pages() {
        for (number, line) in prose(&text(&page)) {
            let quoted = line.split('`').skip(1).step_by(2);
            // Neither patterns nor paths of other repositories.
            let quoted = quoted.filter(|word| word.contains('/') && !word.contains('*') && !word.starts_with('/'));
            let names = quoted.filter(|word| Path::new(word).extension().is_some_and(|extension| extension == "rs"));
            for name in names.filter(|name| !sources.iter().any(|path| path.ends_with(name))) {
                wrong.push(format!("{page}:{number}: there is no {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The map of the code names modules by their paths, and in its table below the module of the row.
#[test]
fn every_module_that_the_map_of_the_code_names_is_there() {
    let map = "docs/explanation/architecture.md";
    let modules: Vec<PathBuf> = files(&root().join("src"))
        .iter()
        .flat_map(|path| path.ancestors().map(|path| path.with_extension("")))
        .collect();
    let is_there = |name: &str| {
        let path = name.replace("::", "/");
        root().join(&path).exists() || modules.iter().any(|module| module.ends_with(&path))
    };
    let is_part = |sign: char| sign.is_ascii_lowercase() || matches!(sign, '_' | '/' | ':');
    let is_name = |word: &&str| word.chars().all(is_part) && !word.contains("://");
    let mut wrong = Vec::new();
    let notes = below("docs/design");
    for page in notes.iter().map(String::as_str).chain([map, "docs/contributing.md"]) {
        for (number, line) in prose(&text(page)) {
            let is_row = page == map && line.starts_with("| `");
            let words = line.split('`').skip(1).step_by(2).filter(is_name);
            let module_names = words.filter(|word| is_row || word.trim_end_matches('/').contains(['/', ':']));
            let missing = module_names.filter(|word| !is_there(word.trim_end_matches('/')));
            wrong.extend(missing.map(|word| format!("{page}:{number}: there is no {word}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the pages below a folder, by their paths from the top.
pub(super) fn below(folder: &str) -> Vec<String> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let pages = files(&root().join(folder)).into_iter().filter(is_page);
    let name = |path: PathBuf| {
        let below = path.strip_prefix(root()).expect("it lies below the top");
        below.to_str().expect("pages have plain names").to_owned()
    };
    pages.map(name).collect()
}

/// Returns the text of a page.
pub(super) fn text(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page} cannot be read: {error}"))
}

/// Returns the pages for people.
pub(super) fn pages() -> Vec<String> {
    let top = ["README.md", "CHANGELOG.md", "action/README.md", "plugin/README.md", "python/README.md"];
    top.map(str::to_owned).into_iter().chain(below("docs")).chain(below("examples")).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all files below a folder, sorted; of a file, itself.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{} cannot be listed: {error}", path.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    found.sort();
    let is_made = |place: &&PathBuf| place.ends_with("target") || place.ends_with("node_modules");
    found.iter().filter(|page| !is_made(page)).flat_map(|folder| files(folder)).collect()
}

/// Returns the lines of a text that are in no fenced block, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<String> = None;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let ticks: String = line.trim_start().chars().take_while(|sign| *sign == '`').collect();
        match &fence {
            Some(open) if line.trim() == open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => return true,
        }
        false
    })
}

/// Returns the targets of the links of a text, with the numbers of their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let targets = |(number, line): (usize, &str)| {
        let targets: Vec<&str> = line.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        targets.into_iter().map(|target| (number, target.to_owned())).collect::<Vec<_>>()
    };
    prose(text).flat_map(targets).collect()
}

/// Returns the path from the top that a link of a page leads to, and its fragment; `None` for a
/// URL.
fn resolve(page: &str, link: &str) -> Option<(String, Option<String>)> {
    if link.contains("://") {
        return None;
    }
    let (path, fragment) = link.split_once('#').map_or((link, None), |(path, fragment)| (path, Some(fragment)));
    let mut parts: Vec<&str> = if path.is_empty() { page.split('/').collect() } else { Vec::new() };
    if !path.is_empty() {
        parts.extend(page.split('/').rev().skip(1).collect::<Vec<_>>().into_iter().rev());
        for part in Path::new(path).components() {
            match part {
                Component::ParentDir => drop(parts.pop()),
                Component::Normal(name) => parts.push(name.to_str().expect("links are text")),
                _ => {}
            }
        }
    }
    Some((parts.join("/"), fragment.map(str::to_owned)))
}

/// Returns the fragments by which a page's headings are linked, as hosts derive them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut slug_counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter_map(|(_, line)| Some(line.strip_prefix('#')?.trim_start_matches('#').trim()));
    let mut anchors = BTreeSet::new();
    for heading in headings {
        let plain = without_targets(heading).to_lowercase();
        let letters = plain.chars().filter(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_'));
        let slug: String = letters.map(|sign| if sign == ' ' { '-' } else { sign }).collect();
        let count = slug_counts.entry(slug.clone()).or_default();
        anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    anchors
}

/// Returns a line without the targets of its links.
fn without_targets(line: &str) -> String {
    let mut parts = line.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, rest| text + "]" + rest.split_once(')').map_or("", |(_, behind)| behind))
}

/// Returns the pages below `docs` that a line mentions.
fn page_names(line: &str) -> impl Iterator<Item = String> {
    line.match_indices("docs/").filter_map(|(at, _)| {
        let is_part = line[..at].ends_with(|sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_'));
        let name: String = line[at..]
            .chars()
            .take_while(|sign| sign.is_alphanumeric() || matches!(sign, '/' | '-' | '_' | '.'))
            .collect();
        let (page, _) = name.split_once(".md")?;
        (!is_part).then(|| format!("{page}.md"))
    })
}
