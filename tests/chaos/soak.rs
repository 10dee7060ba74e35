//! Everything at once, for as long as one likes: runs and threads in two clones of one remote,
//! while commands are killed, the disk is full, limits stand, git prunes and packs, clocks are put
//! right, and workers do what they can against all of it.
//!
//! In the end every run is sealed and verified, in both clones, and everything that was
//! acknowledged is there.

mod actions;
mod commands;
mod disk;
mod ledger;
mod workers;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use self::disk::Disk;
use self::ledger::Ledger;
use self::workers::Fate;
use super::dice::Dice;
use super::{SEED, SOAK, let_an_hour_pass, number};
use crate::common::repo::TestRepo;
use crate::common::{Environment, program_path};

/// The default number of seconds.
const SECONDS: u64 = 10;

/// How long it goes on before everybody stops and everything is looked at.
const SPELL: Duration = Duration::from_secs(30);

/// The repositories: where runs are driven, the second clone, the remote.
const PLACES: [(&str, &str); 3] = [("repo", "repo/.git"), ("other", "other/.git"), ("hub", "hub")];

/// A soak that goes on.
struct Soak {
    repo: TestRepo,
    disk: Option<Disk>,
    other_clock: Option<&'static str>,
    ledger: Mutex<Ledger>,
}

#[test]
fn everything_at_once_ends_with_every_run_sealed_and_verified() {
    let (seconds, seed, began) = (number(SOAK, SECONDS), number(SEED, 0), Instant::now());
    let soak = Soak::new();
    let (time, mut spell) = (Duration::from_secs(seconds), 0);
    while began.elapsed() < time {
        eprintln!("{SEED}={seed} {SOAK}={seconds}: spell {spell}, after {:?}", began.elapsed());
        let until = (Instant::now() + SPELL).min(began + time);
        std::thread::scope(|scope| {
            for actor in 0..2 {
                let (soak, mut dice) = (&soak, Dice::new(seed, spell * 2 + actor));
                scope.spawn(move || {
                    for turn in 0.. {
                        if Instant::now() >= until {
                            break;
                        }
                        // No two of them ever have the same number.
                        let number = (spell * 1000 + turn) * 2 + actor;
                        if actor == 1 && dice.once_in(2) {
                            soak.shake(&mut dice);
                        } else {
                            soak.act(&mut dice, number);
                        }
                    }
                });
            }
        });
        spell += 1;
        soak.look();
    }
    let chaos = began.elapsed();
    soak.settle();
    soak.holds();
    eprintln!("{spell} spells, {chaos:?} of everything at once, {:?} with the end", began.elapsed());
    eprint!("{}", soak.ledger());
}

impl Soak {
    fn new() -> Self {
        let mut env = Environment::empty();
        env.keep();
        fs::create_dir(env.repo()).unwrap();
        let disk = Disk::new(&env.repo());
        let other_clock = commands::other_clock();
        if other_clock.is_none() {
            eprintln!("no clock is put right in this soak: that needs libfaketime");
        }
        if rustix::process::getuid().is_root() {
            eprintln!("ulimit -u stands, but the system does not hold root to it");
        }
        let repo = TestRepo { env };
        repo.make(&[]);
        let soak = Self { repo, disk, other_clock, ledger: Mutex::default() };
        for folder in ["said", "plans", "states", "offers"] {
            fs::create_dir(soak.path(folder)).unwrap();
        }
        fs::write(soak.path("document"), "noted\n").unwrap();
        // Crashes are frequent here; the default limit is for unexpected ones.
        soak.repo.config("handoff.maxCrashes", "100000");
        soak.repo.config("handoff.queue.default.concurrency", "2");
        soak.succeeds("git", ".", &["init", "--quiet", "--bare", "hub"]);
        soak.succeeds("git", "repo", &["remote", "add", "origin", "../hub"]);
        soak.succeeds("git", "repo", &["push", "--quiet", "--set-upstream", "origin", "main"]);
        soak.succeeds("git", ".", &["clone", "--quiet", "hub", "other"]);
        // Another key than the first clone's.
        soak.succeeds("git", "other", &["config", "handoff.signingKey", ""]);
        soak
    }

    fn path(&self, below: &str) -> PathBuf {
        self.repo.path(below)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handoff(&self, place: &str, args: &[&str]) -> String {
        self.succeeds(program_path(), place, args)
    }

    /// Holds what is true whenever everybody has stopped.
    fn look(&self) {
        for (place, git) in PLACES {
            let_an_hour_pass(&self.path(git));
            let mended = self.calmly(program_path(), place, &["doctor", "--fix"]);
            assert!(matches!(mended.code, Some(0 | 3)), "in {place}: {}{}", mended.printed, mended.stderr);
            let ended = self.calmly("git", place, &["fsck", "--strict", "--no-dangling", "--no-progress"]);
            assert!(
                ended.is_done() && ended.printed.is_empty() && ended.stderr.is_empty(),
                "in {place}: {}{}",
                ended.printed,
                ended.stderr
            );
        }
        let open = self.ledger().open();
        for run in &open {
            let verified = self.calmly(program_path(), "repo", &["verify", "--allow-partial", run]);
            let sound = matches!(verified.code, Some(0 | 3))
                && !["TAMPERED", "UNTRUSTED"].iter().any(|word| verified.printed.contains(word));
            assert!(sound, "{run}: {}{}", verified.printed, verified.stderr);
            if verified.is_done() {
                self.ledger().runs.get_mut(run).unwrap().sealed = true;
            }
        }
        for place in ["repo", "other"] {
            let verified = self.calmly(program_path(), place, &["thread", "verify", "--all"]);
            let sound = verified.is_done() || verified.stderr.contains("there are no threads here");
            assert!(sound, "in {place}: {}{}", verified.printed, verified.stderr);
        }
    }

    /// Drives every run to its end, as an operator would the next morning.
    fn settle(&self) {
        let names: Vec<String> = self.ledger().runs.keys().cloned().collect();
        // One whose submit was never acknowledged may be there all the same.
        let there =
            self.succeeds("git", "repo", &["for-each-ref", "--format=%(refname:lstrip=3)", "refs/handoff/runs"]);
        let there: BTreeSet<&str> = there.lines().collect();
        for name in &names {
            let acknowledged = self.ledger().runs[name].acknowledged;
            assert!(!acknowledged || there.contains(name.as_str()), "{name} was acknowledged and is gone");
            if there.contains(name.as_str()) {
                self.settle_run(name);
            } else {
                self.ledger().count("submits that came to nothing", "times");
                self.ledger().runs.remove(name);
            }
        }
    }

    /// Returns what has become of the items of a run that was to become something else, and of how
    /// many what.
    fn wrong(&self, name: &str) -> (Vec<(String, String, String)>, Vec<String>) {
        let status: Value = serde_json::from_str(&self.handoff("repo", &["status", "--json", name])).unwrap();
        let (mut wrong, mut all) = (Vec::new(), Vec::new());
        let ledger = self.ledger();
        for item in status["items"].as_array().unwrap() {
            let (id, is) = (item["id"].as_str().unwrap(), item["status"].as_str().unwrap());
            match (ledger.runs[name].fates[id], is) {
                (Fate::Done, "done") | (Fate::Failed, "failed") => {}
                (Fate::Failed, "done") => panic!("{name}/{id} was to fail: {item}"),
                _ => wrong.push((id.to_owned(), is.to_owned(), item["reason"].to_string())),
            }
            all.push(is.to_owned());
        }
        (wrong, all)
    }

    fn settle_run(&self, name: &str) {
        for round in 0.. {
            let ended = self.calmly(program_path(), "repo", &["run", name]);
            assert!(matches!(ended.code, Some(0 | 4)), "{name}: {:?}\n{}{}", ended.code, ended.printed, ended.stderr);
            let (wrong, all) = self.wrong(name);
            if wrong.is_empty() {
                if !self.repo.is_sealed(name) {
                    self.handoff("repo", &["close", name]);
                }
                let mut ledger = self.ledger();
                let done = all.iter().all(|is| is == "done");
                ledger.count("runs", if done { "all done" } else { "with items that were to fail" });
                all.into_iter().for_each(|is| ledger.count("items", is));
                return;
            }
            assert!(
                self.ledger().runs[name].troubled && round < 4,
                "{name} was not troubled by anything, and yet: {wrong:?}"
            );
            for (id, is, reason) in wrong.iter().filter(|(_, is, _)| is == "failed") {
                self.ledger().count("items given another round by hand", reason.chars().take(60).collect::<String>());
                self.ledger().tell(format!("{name}/{id} is {is}: {reason}"));
                self.handoff("repo", &["retry", &format!("{name}/{id}")]);
            }
        }
    }

    /// Holds everything that is to be true in the end.
    fn holds(&self) {
        self.look();
        let (runs, checkpoints, adopted) = {
            let ledger = self.ledger();
            let documents = |(name, run): (&String, &ledger::Submitted)| (name.clone(), run.documents);
            (ledger.runs.iter().map(documents).collect::<Vec<_>>(), ledger.checkpoints.clone(), ledger.adopted.clone())
        };
        let mut fired = BTreeSet::new();
        for (name, (least, most)) in &runs {
            let log = self.handoff("repo", &["log", "--json", name]);
            let entries: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let of = |kind: &str| entries.iter().filter(move |entry| entry["kind"] == kind).collect::<Vec<_>>();
            let documents = of("document.written").len() as u64;
            assert!(
                (*least..=*most).contains(&documents),
                "{name} has {documents} revisions, {least} were acknowledged, {most} asked for"
            );
            assert_eq!(of("run.sealed").len(), 1, "{name}");
            let ids: BTreeSet<String> = of("item.reconciled")
                .iter()
                .filter(|entry| entry["status"] == "done")
                .map(|entry| entry["item"].to_string())
                .collect();
            assert_eq!(
                ids.len(),
                of("item.reconciled").iter().filter(|entry| entry["status"] == "done").count(),
                "{name}: an item was done twice"
            );
            fired.extend(
                of("item.fired")
                    .iter()
                    .map(|entry| format!("{name} {} {}", entry["item"].as_str().unwrap(), entry["attempt"])),
            );
        }
        let mut ran = self.repo.lines("effects");
        ran.sort();
        assert!(ran.windows(2).all(|two| two[0] != two[1]), "an attempt ran twice");
        assert!(ran.iter().all(|line| fired.contains(line)), "an attempt ran without an entry");
        for (place, thread, name) in &checkpoints {
            self.ledger().count("checkpoints", *place);
            let log = self.handoff(place, &["--json", "thread", "log", thread]);
            assert_eq!(
                log.lines().filter(|line| line.contains(&format!("\"checkpoint_id\":\"{name}\""))).count(),
                1,
                "{thread}:{name} in {place}"
            );
        }
        for thread in &adopted {
            self.ledger().count("threads", "adopted");
            self.handoff("other", &["thread", "verify", thread]);
        }
        self.handoff("repo", &["verify", "--all", "--allow-partial"]);
        self.handoff("repo", &["push", "--all"]);
        self.handoff("other", &["fetch"]);
        self.handoff("other", &["push", "--all"]);
        for (name, _) in &runs {
            self.handoff("other", &["verify", "--allow-partial", &format!("origin/{name}")]);
        }
        self.handoff("repo", &["clean", "--force"]);
        // Work that could not be saved under a limit or on a full disk was preserved for a person.
        for left in self.repo.worktrees().iter().filter(|path| path.join("tree").exists()) {
            assert!(left.to_string_lossy().ends_with("-unsaved"), "{} was left", left.display());
        }
        self.handoff("repo", &["clean", "--force", "--discard"]);
        self.repo.no_process_is_left();
        assert_eq!(self.repo.worktrees(), Vec::<PathBuf>::new());
        self.look();
    }
}

impl Drop for Soak {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let ledger = self.ledger();
            eprintln!("{}\n{ledger}\nwhat failed is left in {}", ledger.last(), self.repo.env.path().display());
        } else {
            drop(self.disk.take());
            let _ = fs::remove_dir_all(self.repo.env.path());
        }
    }
}
