//! Finds what failed in the output of common test runners: the numbers of tests, and the first
//! failing assertion. Pure.

use regex::Regex;

/// The most lines of an assertion that are shown.
const MOST: usize = 8;

/// A test runner, known by its summary.
struct Runner {
    /// The lines that count tests, with the groups `failed`, `errors`, `passed` and `total`. The
    /// numbers of all such lines are added; a match without any of the groups is one failed test.
    counts: &'static str,
    /// The first line of an assertion that failed.
    begin: &'static str,
    /// The first line that no longer belongs to it.
    end: &'static str,
}

/// The known runners, from the most characteristic summary to the least.
const RUNNERS: &[Runner] = &[
    // cargo test
    Runner {
        counts: r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed;",
        begin: r"^thread '.*' .*panicked at ",
        end: r"^note: |^$|^---- ",
    },
    // jest
    Runner {
        counts: r"^Tests: +(?:(?P<failed>\d+) failed, )?.*?(?P<total>\d+) total",
        begin: r"^ +● .+",
        end: r"^ *>? *\d+ \||^ +at ",
    },
    // vitest
    Runner {
        counts: r"^ +Tests +(?:(?P<failed>\d+) failed)?.*\((?P<total>\d+)\)",
        begin: r"^ *FAIL  ?\S+ > .+",
        end: r"^ *❯ |^ *⎯",
    },
    // node --test
    Runner {
        counts: r"^(?:ℹ|#) (?:tests (?P<total>\d+)|fail (?P<failed>\d+))$",
        begin: r"^ *(?:\w*Error\b.*: |error: )",
        end: r"^ +at |^ *(?:code|stack|name): |^ *\{$",
    },
    // PHPUnit
    Runner {
        counts: r"^Tests: (?P<total>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?(?:, Failures: (?P<failed>\d+))?",
        begin: r"^1\) .+",
        end: r"^/\S+:\d+$|^FAILURES!|^ERRORS!|^2\) ",
    },
    // RSpec
    Runner {
        counts: r"^(?P<total>\d+) examples?, (?P<failed>\d+) failures?",
        begin: r"^ +1\) .+",
        end: r"^ +# |^ +2\) ",
    },
    // pytest
    Runner {
        counts: r"^(?:=+ )?(?:(?P<failed>\d+) failed)?(?:, )?(?:(?P<passed>\d+) passed)?(?:, \d+ (?:skipped|deselected|xfailed|xpassed|warnings?|rerun))*(?:, (?P<errors>\d+) errors?)? in [\d.]+s",
        begin: r"^E  ",
        end: r"^[^E]|^$",
    },
    // Python's unittest
    Runner {
        counts: r"^Ran (?P<total>\d+) tests? in |^FAILED \((?:failures=(?P<failed>\d+))?(?:, )?(?:errors=(?P<errors>\d+))?",
        begin: r"^\w+(?:Error|Exception)\b.*",
        end: r"^$|^[-=]{10}",
    },
    // go test
    Runner { counts: r"^--- FAIL: ", begin: r"^ +\S+\.go:\d+: ", end: r"^FAIL|^(?:---|===) |^ok " },
];

/// The failure that a test runner reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestFailure {
    /// The number of failed tests.
    pub failed: u64,
    /// The number of all tests, if the runner prints it.
    pub total: Option<u64>,
    /// The first failing assertion; empty if there is none that is known.
    pub assertion: Vec<String>,
}

impl TestFailure {
    /// Returns the failure in an output without control sequences, or `None` if no known runner
    /// reports one.
    pub fn read(output: &str) -> Option<Self> {
        RUNNERS.iter().find_map(|runner| runner.read(output))
    }
}

/// Formats `2 of 14 tests`.
impl std::fmt::Display for TestFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.total, self.failed) {
            (Some(total), failed) => write!(f, "{failed} of {total} test{}", if total == 1 { "" } else { "s" }),
            (None, 1) => f.write_str("1 test"),
            (None, failed) => write!(f, "{failed} tests"),
        }
    }
}

impl Runner {
    fn read(&self, output: &str) -> Option<TestFailure> {
        let counts = compiled(self.counts);
        let (mut failed, mut passed, mut total) = (0, None::<u64>, None::<u64>);
        let mut is_counted = false;
        for found in output.lines().filter_map(|line| counts.captures(line)) {
            let number = |name: &str| found.name(name).and_then(|digits| digits.as_str().parse::<u64>().ok());
            let of_failed = [number("failed"), number("errors")];
            let of_others = [number("passed"), number("total")];
            let has_groups = counts.captures_len() > 1;
            if has_groups && of_failed.iter().chain(&of_others).all(Option::is_none) {
                continue;
            }
            is_counted = true;
            failed += if has_groups { of_failed.iter().flatten().sum() } else { 1 };
            passed = number("passed").map_or(passed, |number| Some(passed.unwrap_or(0) + number));
            total = number("total").map_or(total, |number| Some(total.unwrap_or(0) + number));
        }
        if !is_counted || failed == 0 {
            return None;
        }
        let has_passed = self.counts.contains("<passed>");
        let total = total.or_else(|| has_passed.then(|| passed.unwrap_or(0) + failed));
        Some(TestFailure { failed, total: total.map(|total| total.max(failed)), assertion: self.assertion(output) })
    }

    /// Returns the first assertion without its empty lines.
    fn assertion(&self, output: &str) -> Vec<String> {
        let (begin, end) = (compiled(self.begin), compiled(self.end));
        let mut lines = output.lines().skip_while(|line| !begin.is_match(line)).peekable();
        let first = lines.next().into_iter();
        // An empty line directly after the first one separates a name from its assertion.
        while lines.next_if(|line| line.trim().is_empty()).is_some() {}
        let further = lines.take_while(|line| !end.is_match(line));
        let shown_lines = first.chain(further).filter(|line| !line.trim().is_empty()).take(MOST);
        let shown_lines: Vec<&str> = shown_lines.map(str::trim_end).collect();
        let indent = shown_lines.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
        shown_lines.iter().map(|line| line.get(indent..).unwrap_or(line).to_owned()).collect()
    }
}

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the table has valid patterns")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &str) -> (String, Vec<String>) {
        let failure = TestFailure::read(output).expect("a runner reports a failure");
        (failure.to_string(), failure.assertion)
    }

    #[test]
    fn every_pattern_is_valid() {
        for runner in RUNNERS {
            drop([runner.counts, runner.begin, runner.end].map(compiled));
        }
    }

    #[test]
    fn cargo_test_counts_all_its_binaries() {
        let output = "running 3 tests\ntest a ... ok\n\nfailures:\n\n---- greets stdout ----\n\n\
            thread 'greets' (4711) panicked at src/lib.rs:9:9:\nassertion `left == right` failed\n  left: \"Hello\"\n \
            right: \"Hallo\"\nnote: run with `RUST_BACKTRACE=1`\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0\n\
            test result: ok. 4 passed; 0 failed; 0 ignored; 0\n";
        let (counts, lines) = read(output);
        assert_eq!(counts, "1 of 7 tests");
        assert_eq!(
            lines,
            [
                "thread 'greets' (4711) panicked at src/lib.rs:9:9:",
                "assertion `left == right` failed",
                "  left: \"Hello\"",
                " right: \"Hallo\"",
            ]
        );
        assert_eq!(TestFailure::read("test result: ok. 4 passed; 0 failed; 0 ignored\n"), None);
    }

    #[test]
    fn pytest_shows_the_assertion_and_not_its_summary() {
        let output = "    def test_greet():\n>       assert greet() == 'Hallo'\nE       AssertionError: assert 'Hello' == 'Hallo'\n\
            E         \nE         - Hallo\nE         + Hello\n\ntest_app.py:4: AssertionError\n\
            =========================== short test summary info ============================\n\
            FAILED test_app.py::test_greet - AssertionError: assert\n";
        for (summary, counts) in [
            ("========================= 1 failed, 2 passed in 0.03s =========================", "1 of 3 tests"),
            ("1 failed, 2 passed, 1 warning in 0.03s", "1 of 3 tests"),
            ("1 failed, 2 passed, 3 skipped, 1 error in 0.03s", "2 of 4 tests"),
            ("=== 1 failed in 0.03s ===", "1 of 1 test"),
        ] {
            let (found, lines) = read(&format!("{output}{summary}\n"));
            assert_eq!(found, counts, "{summary}");
            let first = "E       AssertionError: assert 'Hello' == 'Hallo'";
            assert_eq!(lines, [first, "E", "E         - Hallo", "E         + Hello"]);
        }
        assert_eq!(TestFailure::read("===== 3 passed in 0.03s =====\n"), None);
    }

    #[test]
    fn runners_of_javascript_are_told_apart() {
        let jest = "FAIL src/greet.test.js\n  ● greets in Dutch\n\n    expect(received).toBe(expected) // Object.is equality\n\n    \
            Expected: \"Hallo\"\n    Received: \"Hello\"\n\n      3 | test('x', () => {\n    > 4 |   expect(1)\n\n      at Object.toBe (a.js:4:5)\n\n\
            Tests:       1 failed, 2 passed, 3 total\n";
        let (counts, lines) = read(jest);
        assert_eq!(counts, "1 of 3 tests");
        assert_eq!(lines[0], "● greets in Dutch");
        assert_eq!(lines[2..], ["  Expected: \"Hallo\"", "  Received: \"Hello\""]);
        let vitest = " FAIL  src/greet.test.ts > greets\nAssertionError: expected 'Hello' to be 'Hallo'\n\n\
            Expected: \"Hallo\"\nReceived: \"Hello\"\n\n ❯ src/greet.test.ts:5:20\n\n Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n";
        let (vitest_counts, vitest_lines) = read(vitest);
        assert_eq!((vitest_counts.as_str(), vitest_lines.len()), ("1 of 3 tests", 4));
        assert_eq!(vitest_lines[1], "AssertionError: expected 'Hello' to be 'Hallo'");
        let node = "ℹ tests 3\nℹ suites 0\nℹ pass 2\nℹ fail 1\nℹ cancelled 0\n\n✖ failing tests:\n\ntest at test/a.test.js:5:1\n\
            ✖ greets (1.2ms)\n  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n  + actual - expected\n  \n  \
            + 'Hello'\n  - 'Hallo'\n  \n      at TestContext.<anonymous> (a.js:6:3)\n";
        let (node_counts, node_lines) = read(node);
        assert_eq!((node_counts.as_str(), node_lines.len()), ("1 of 3 tests", 4));
        let tap = "not ok 1 - greets\n  ---\n  failureType: 'testCodeFailure'\n  error: |-\n    Expected values to be strictly equal:\n    \n    \
            'Hello' !== 'Hallo'\n    \n  code: 'ERR_ASSERTION'\n# tests 3\n# pass 2\n# fail 1\n";
        assert_eq!(read(tap).1, ["error: |-", "  Expected values to be strictly equal:", "  'Hello' !== 'Hallo'"]);
    }

    #[test]
    fn other_runners_have_their_own_summaries() {
        let go = "--- FAIL: TestGreet (0.00s)\n    greet_test.go:7: got \"Hello\", want \"Hallo\"\nFAIL\nexit status 1\nFAIL\tx\t0.002s\n";
        assert_eq!(read(go), ("1 test".to_owned(), vec!["greet_test.go:7: got \"Hello\", want \"Hallo\"".to_owned()]));
        let phpunit = "There was 1 failure:\n\n1) GreetTest::testDutch\nFailed asserting that two strings are identical.\n--- Expected\n+++ Actual\n\
            @@ @@\n-'Hallo'\n+'Hello'\n\n/app/tests/GreetTest.php:10\n\nFAILURES!\nTests: 3, Assertions: 3, Failures: 1.\n";
        let (counts, lines) = read(phpunit);
        assert_eq!((counts.as_str(), lines.len()), ("1 of 3 tests", 7));
        let rspec = "Failures:\n\n  1) Greeter greets in Dutch\n     Failure/Error: expect(greet).to eq(\"Hallo\")\n\n       expected: \"Hallo\"\n            \
            got: \"Hello\"\n\n       (compared using ==)\n     # ./spec/greet_spec.rb:5:in 'block'\n\n3 examples, 1 failure\n";
        let (rspec_counts, rspec_lines) = read(rspec);
        assert_eq!((rspec_counts.as_str(), rspec_lines.len()), ("1 of 3 tests", 5));
        let unittest = "FAIL: test_greet (t.T)\n------------------------------\nTraceback (most recent call last):\n  File \"t.py\", line 6\n\
            AssertionError: 'Hello' != 'Hallo'\n- Hello\n+ Hallo\n\n\n------------\nRan 3 tests in 0.001s\n\nFAILED (failures=1)\n";
        let (unittest_counts, unittest_lines) = read(unittest);
        assert_eq!((unittest_counts.as_str(), unittest_lines.len()), ("1 of 3 tests", 3));
    }

    #[test]
    fn other_output_is_no_report_of_tests() {
        assert_eq!(TestFailure::read("make: *** [Makefile:3: check] Error 1\n"), None);
        assert_eq!(TestFailure::read(""), None);
    }
}
