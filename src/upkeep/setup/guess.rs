//! Guesses from the files at the top of a repository which command checks work.

use serde_json::Value;

use crate::git::store::Store;
use crate::repository::read_up_to;

/// The most bytes of a file that are looked at.
const MOST: u64 = 1 << 20;

/// The test script of `npm init`, which only fails.
const NO_TESTS: &str = "no test specified";

/// Returns the command that runs the tests, or `None` if it is not plain which one.
///
/// A `test` target of a Makefile is plain, whatever else is there. Otherwise exactly one ecosystem
/// must be found.
pub(super) fn check(store: &Store) -> Option<&'static str> {
    if top_file(store, "Makefile").is_some_and(|text| text.lines().any(is_test_target)) {
        return Some("make test");
    }
    let found = [
        ("cargo test", top_file(store, "Cargo.toml").is_some()),
        ("npm test", top_file(store, "package.json").is_some_and(|text| has_test_script(&text))),
        ("go test ./...", top_file(store, "go.mod").is_some()),
        ("pytest", uses_pytest(store)),
    ];
    let mut commands = found.iter().filter(|(_, is_there)| *is_there).map(|(command, _)| *command);
    commands.next().filter(|_| commands.next().is_none())
}

/// Reads a file at the top of the work tree, or of `HEAD` in a bare repository.
fn top_file(store: &Store, name: &str) -> Option<String> {
    let bytes = match store.work_dir() {
        Some(top) => read_up_to(&top.join(name), MOST).ok()?,
        None => store.git().args(["cat-file", "blob", &format!("HEAD:{name}")]).run().ok()?,
    };
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_test_target(line: &str) -> bool {
    line.strip_prefix("test").is_some_and(|rest| {
        let rest = rest.trim_start();
        rest.starts_with(':') && !rest.starts_with(":=") && !rest.starts_with("::=")
    })
}

fn has_test_script(text: &str) -> bool {
    let package: Option<Value> = serde_json::from_str(text).ok();
    let script = package.as_ref().and_then(|package| package["scripts"]["test"].as_str());
    script.is_some_and(|script| !script.trim().is_empty() && !script.contains(NO_TESTS))
}

fn uses_pytest(store: &Store) -> bool {
    let sections = [("pyproject.toml", "[tool.pytest"), ("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]")];
    ["pytest.ini", "conftest.py", "tests/conftest.py"].iter().any(|name| top_file(store, name).is_some())
        || sections.iter().any(|(name, section)| top_file(store, name).is_some_and(|text| text.contains(section)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_test_target_and_a_variable_is_not() {
        assert!(["test:", "test: build", "test :", "test:: all"].into_iter().all(is_test_target));
        assert!(!["test := 1", "test=1", "test-all:", "\ttest:", "# test:"].into_iter().any(is_test_target));
    }

    #[test]
    fn a_script_that_only_fails_is_no_check() {
        assert!(has_test_script(r#"{"scripts": {"test": "vitest run"}}"#));
        let none = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        assert!(![none, "{}", r#"{"scripts": {"test": ""}}"#, "not JSON"].into_iter().any(has_test_script));
    }
}
