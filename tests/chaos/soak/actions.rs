//! Concurrent actions of people, agents and git.

use serde_json::{Value, json};

use super::ledger::Submitted;
use super::{Soak, workers};
use crate::chaos::dice::Dice;

/// How many runs go on at a time.
const RUNS: usize = 5;

/// git's own housekeeping at its most eager.
const HOUSEKEEPING: [&[&str]; 6] = [
    &["gc", "--quiet", "--prune=now"],
    &["prune", "--expire=now"],
    &["repack", "-a", "-d", "-q"],
    &["repack", "--cruft", "--cruft-expiration=now", "-d", "-q"],
    &["pack-refs", "--all"],
    &["multi-pack-index", "write"],
];

impl Soak {
    /// Performs a random action.
    pub(super) fn act(&self, dice: &mut Dice, number: u64) {
        let open = self.ledger().open();
        match dice.roll(0..100) {
            0..16 if open.len() < RUNS => self.submit(dice, number),
            0..44 if !open.is_empty() => self.run(dice, &open),
            44..56 => self.checkpoint(dice, "repo", number),
            56..62 if !open.is_empty() => self.document(dice, &open),
            62..71 => drop(self.in_all_weathers(dice, side(number), &["push", "--all"])),
            71..80 => drop(self.in_all_weathers(dice, "other", &["fetch"])),
            80..84 => self.adopt(dice, number),
            84..87 => self.checkpoint(dice, "other", number),
            87..89 => self.bundle(dice),
            89..92 if !open.is_empty() => self.to_one("verify", dice, &open),
            92..94 => drop(self.in_all_weathers(dice, "repo", &["doctor", "--fix"])),
            94..96 => drop(self.in_all_weathers(dice, "repo", &["clean", "--force"])),
            96..98 if !open.is_empty() => self.to_one("coordinate", dice, &open),
            _ => drop(self.in_all_weathers(dice, "repo", &["runs"])),
        }
    }

    /// Gives a command that is about one of the runs.
    fn to_one(&self, word: &str, dice: &mut Dice, open: &[String]) {
        let name = dice.pick(open).clone();
        self.in_all_weathers(dice, "repo", &[word, &name]);
    }

    /// Lets the repository shake.
    pub(super) fn shake(&self, dice: &mut Dice) {
        if let Some(disk) = self.disk.as_ref().filter(|_| dice.once_in(4)) {
            let (pages, time) = (dice.roll(0..64), dice.roll(50..2000));
            self.ledger().tell(format!("the disk is full but for {pages} pages for {time} ms"));
            self.troubled();
            disk.full_but(pages, || std::thread::sleep(std::time::Duration::from_millis(time)));
            self.troubled();
            let mut ledger = self.ledger();
            ledger.count("full disks", "times");
            ledger.tell("the disk is free again".into());
            return;
        }
        let args = *dice.pick(&HOUSEKEEPING);
        // A push to a remote that prunes at the same time may fail in git itself.
        let place = if dice.once_in(4) { "other" } else { "repo" };
        let mut ledger = self.ledger();
        ledger.count("housekeeping", args[..2].join(" "));
        ledger.tell(format!("in {place}: git {}", args.join(" ")));
        drop(ledger);
        // It may lose to what goes on meanwhile.
        self.calmly("git", place, args);
    }

    fn submit(&self, dice: &mut Dice, number: u64) {
        let name = format!("r{number}");
        let (items, fates) = workers::items(dice);
        self.repo.env.write(&format!("plans/{name}.json"), &json!({ "id": name, "items": items }).to_string());
        let run = Submitted { fates, acknowledged: false, troubled: false, sealed: false, documents: (0, 0) };
        self.ledger().runs.insert(name.clone(), run);
        let ended = self.in_all_weathers(dice, "repo", &["submit", &format!("../plans/{name}.json")]);
        self.ledger().runs.get_mut(&name).unwrap().acknowledged = ended.is_done();
    }

    fn run(&self, dice: &mut Dice, open: &[String]) {
        let name = dice.pick(open);
        let ended = self.in_all_weathers(dice, "repo", &["run", name]);
        {
            let mut ledger = self.ledger();
            let run = ledger.runs.get_mut(name).unwrap();
            // A limit is one on its workers, too.
            run.troubled |= !matches!(ended.code, Some(0 | 4));
            run.sealed |= ended.is_done();
        }
        if ended.code == Some(4) {
            self.tend(dice, name);
        }
    }

    /// Sees to a run that has settled with items that are not done: those that were to fail are let
    /// be.
    fn tend(&self, dice: &mut Dice, name: &str) {
        let wrong = self.wrong(name).0;
        if wrong.is_empty() {
            let closed = self.in_all_weathers(dice, "repo", &["close", name]).is_done();
            self.ledger().runs.get_mut(name).unwrap().sealed |= closed;
        }
        for (id, _, _) in wrong.iter().filter(|(_, is, _)| is == "failed") {
            self.in_all_weathers(dice, "repo", &["retry", &format!("{name}/{id}")]);
        }
    }

    /// Whatever is under way may fail for a full disk.
    fn troubled(&self) {
        self.ledger().runs.values_mut().filter(|run| !run.sealed).for_each(|run| run.troubled = true);
    }

    fn checkpoint(&self, dice: &mut Dice, place: &'static str, number: u64) {
        let adopted = self.ledger().adopted.clone();
        let thread = match place {
            "repo" => thread(dice, number),
            _ if adopted.is_empty() => return,
            _ => dice.pick(&adopted).clone(),
        };
        self.repo.env.write(&format!("states/{number}"), &format!("state {number}\n"));
        let state = format!("../states/{number}");
        let mut args = vec!["checkpoint", &thread, "--state", &state];
        if dice.once_in(3) {
            args.push("--worktree");
        }
        let ended = self.in_all_weathers(dice, place, &args);
        if let (true, Ok(answer)) = (ended.is_done(), serde_json::from_str::<Value>(&ended.printed)) {
            let name = answer["checkpoint_id"].as_str().unwrap().to_owned();
            self.ledger().checkpoints.push((place, thread, name));
        }
    }

    fn document(&self, dice: &mut Dice, open: &[String]) {
        let name = dice.pick(open);
        self.ledger().runs.get_mut(name).unwrap().documents.1 += 1;
        let ended = self.in_all_weathers(dice, "repo", &["doc", "put", name, "notes", "../document"]);
        self.ledger().runs.get_mut(name).unwrap().documents.0 += u64::from(ended.is_done());
    }

    fn adopt(&self, dice: &mut Dice, number: u64) {
        let thread = thread(dice, number);
        let offer = self.in_all_weathers(dice, "repo", &["offer", &thread]);
        if !offer.is_done() {
            return;
        }
        self.repo.env.write(&format!("offers/{number}.json"), &offer.printed);
        let (descriptor, name) = (format!("../offers/{number}.json"), format!("a{number}"));
        let args = ["adopt", &descriptor, "--as", &name, "--from", "../repo", "--accept-unknown-signer"];
        if self.in_all_weathers(dice, "other", &args).is_done() {
            self.ledger().adopted.push(name);
        }
    }

    fn bundle(&self, dice: &mut Dice) {
        let thread = thread(dice, 0);
        self.in_all_weathers(dice, "repo", &["bundle", &thread, "--output", "../bundle"]);
        if self.path("bundle").exists() {
            // It is whole or not there.
            let verified = self.calmly(
                crate::common::program_path(),
                "repo",
                &["verify", "--allow-partial", "--bundle", "../bundle"],
            );
            assert!(verified.is_done(), "{}{}", verified.printed, verified.stderr);
        }
    }
}

/// Returns the clone that something is pushed from.
fn side(number: u64) -> &'static str {
    if number.is_multiple_of(3) { "other" } else { "repo" }
}

/// Returns a thread of the first clone; new ones now and then, so that none gets long.
fn thread(dice: &mut Dice, number: u64) -> String {
    format!("t{}-{}", number / 400, dice.roll(0..3))
}
