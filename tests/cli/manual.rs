//! The manual pages, which packages let the program write.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::common::{Environment, assert_output};

#[test]
fn every_command_has_a_manual_page_that_groff_reads_without_a_warning() {
    let env = Environment::empty();
    assert_eq!(env.handoff_in("", ["manual", "man/man1"]).success(), "");
    let folder = env.path().join("man/man1");
    let names = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.collect();
    let help = env.handoff_in("", ["help"]).success();
    let groups = help.split("\nOptions:").next().unwrap();
    let commands = groups.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut pages: BTreeSet<String> =
        commands.filter(|name| *name != "help").map(|name| format!("git-handoff-{name}.1")).collect();
    pages.insert("git-handoff.1".to_owned());
    assert!(pages.len() > 50, "{help}");
    assert_eq!(names, pages);
    let mut groff = Command::new("groff");
    groff.args(["-K", "utf8", "-man", "-T", "utf8", "-w", "w", "-z"]).args(names.iter().map(|name| folder.join(name)));
    let output = groff.output().expect("groff can be started");
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && warnings.is_empty(), "{warnings}");
    let page = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let whole = page("git-handoff.1");
    assert!(whole.matches("\n.SH ").count() == 10 && whole.contains("\\fB130\\fR\n"), "a section is missing");
    assert_output!("manual_key", page("git-handoff-key.1"));
    assert_output!("manual_pipeline", page("git-handoff-pipeline.1"));
}
