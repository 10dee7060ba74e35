//! Phrases about items, trees and lines. Pure.

use gix::bstr::BString;

use super::diff::{Diff, FileDiff};

/// The maximum number of items, files or line ranges in a sentence.
const NAMED: usize = 4;

/// Returns `the patch of r/a`, or `the patches of r/a and r/b`.
pub(super) fn patches(names: &[String]) -> String {
    format!("the {} of {}", if names.len() == 1 { "patch" } else { "patches" }, listed(names))
}

/// Formats that the patches of some items make exactly a commit.
pub(super) fn make_exactly(names: &[String]) -> String {
    let verb = if names.len() == 1 { "makes" } else { "make" };
    format!("{} {verb} exactly this tree of its parent", patches(names))
}

/// Formats the files that a patch changes, with the numbers of added lines.
pub(super) fn changed(diff: &Diff) -> String {
    let files: Vec<String> = diff.files.iter().map(|(path, file)| changed_file(path, file)).collect();
    listed(&files)
}

fn changed_file(path: &BString, file: &FileDiff) -> String {
    let path = format!("{:?}", path.to_string());
    let stretches = stretches(&file.places);
    match file.places.len() {
        _ if file.gone => format!("{path} (which is gone)"),
        0 if file.removed.is_empty() => path,
        0 => format!("{path} (lines left out)"),
        1 => format!("{path} line {}", listed(&stretches)),
        _ => format!("{path} lines {}", listed(&stretches)),
    }
}

/// Returns `3`, `5-7` for the lines 3, 5, 6 and 7.
fn stretches(places: &[u64]) -> Vec<String> {
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    for place in places {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == *place => *last = *place,
            _ => stretches.push((*place, *place)),
        }
    }
    stretches
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect()
}

/// Returns `a`, `a and b`, `a, b and c`, or the first few `and 7 more`.
fn listed(all: &[String]) -> String {
    let left_out = all.len().saturating_sub(NAMED);
    let more = format!("{left_out} more");
    let mut names: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
    names.extend((left_out > 0).then_some(more.as_str()));
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (1..=count).map(|n| format!("r/{n}")).collect()
    }

    #[test]
    fn items_are_listed() {
        assert_eq!(make_exactly(&names(1)), "the patch of r/1 makes exactly this tree of its parent");
        assert_eq!(make_exactly(&names(2)), "the patches of r/1 and r/2 make exactly this tree of its parent");
        assert_eq!(patches(&names(4)), "the patches of r/1, r/2, r/3 and r/4");
        assert_eq!(patches(&names(6)), "the patches of r/1, r/2, r/3, r/4 and 2 more");
    }

    #[test]
    fn patch_changes_are_counted_by_line() {
        let patch = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,5 @@\n a\n-b\n+B\n+C\n d\n+E\n\
            @@ -20 +21,2 @@\n z\n+y\ndiff --git a/gone b/gone\ndeleted file mode 100644\nindex 1..0\n--- a/gone\n+++ /dev/null\n\
            @@ -1 +0,0 @@\n-x\ndiff --git a/less b/less\nindex 1..2 100644\n--- a/less\n+++ b/less\n@@ -1,2 +1 @@\n a\n-b\n\
            diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n";
        let summary = changed(&Diff::read(patch.as_bytes()));
        assert_eq!(summary, r#""gone" (which is gone), "less" (lines left out), "mode" and "x" lines 2-3, 5 and 22"#);
    }
}
