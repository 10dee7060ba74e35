//! Both implementations find the same: each story is verified by the program and by `verify.mjs`.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use git_handoff::verify::{AskAnchors, Bundle, ChainReport, Logs, Options};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::everything;
use crate::common::forge::Forge;

/// The stories so far, as bundles, with what the program finds in each.
pub(super) struct Both {
    folder: TempDir,
    cases: Vec<Value>,
    stories: usize,
}

impl Default for Both {
    fn default() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), cases: Vec::new(), stories: 0 }
    }
}

impl Both {
    /// Bundles what the repository tells, and verifies it there with no known key. Where everything
    /// is tried, a third of the stories does.
    pub(super) fn note(&mut self, forge: &Forge, story: &str) {
        self.stories += 1;
        if everything() && !self.stories.is_multiple_of(3) {
            return;
        }
        let (file, report) = self.verify(forge);
        let ChainReport::Run(report) = report else { panic!("{story}: the bundle has no run") };
        let report = report.to_json();
        self.cases.push(json!({
            "story": story,
            "file": file,
            "run": report["run"],
            "finding": report.get("finding"),
            "failure": report["failure"],
            "outcome": report["outcome"],
        }));
    }

    /// Writes a bundle, and verifies its last run. Objects that a forged entry names and
    /// that are not there are not in it, so `git bundle` would not make it.
    fn verify(&self, forge: &Forge) -> (PathBuf, ChainReport) {
        let file = self.folder.path().join(format!("{}.bundle", self.cases.len()));
        let refs = forge.git(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/handoff"]);
        let format = forge.git(&["rev-parse", "--show-object-format"]);
        fs::write(&file, format!("# v3 git bundle\n@object-format={format}\n{refs}\n\n")).unwrap();
        let mut pack = Command::new("git");
        pack.args(["pack-objects", "--revs", "--stdout", "--quiet", "--threads=1", "--missing=allow-any"]);
        pack.current_dir(forge.path()).stdin(Stdio::piped());
        let mut pack = pack.stdout(fs::File::options().append(true).open(&file).unwrap()).spawn().unwrap();
        let tips = refs.lines().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>().join("\n") + "\n";
        pack.stdin.take().unwrap().write_all(tips.as_bytes()).unwrap();
        assert!(pack.wait().unwrap().success());
        let bundle = Bundle::open(&file, 1 << 30).unwrap();
        let reports = bundle.verify(&[], Logs::default(), AskAnchors::none(), &Options::default()).unwrap();
        (file, reports.last().unwrap().unwrap())
    }

    /// Asserts that the other implementation accepts and refuses the same, and finds the same
    /// first.
    #[track_caller]
    pub(super) fn compare(&self) {
        let list = self.folder.path().join("cases.json");
        fs::write(&list, json!(self.cases).to_string()).unwrap();
        let mut node = Command::new("node");
        node.current_dir(env!("CARGO_MANIFEST_DIR")).arg("tests/interop/findings.mjs").arg(&list);
        let output = node.output().unwrap();
        assert!(output.status.success() && !self.cases.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
