//! Commands killed at any moment: what stands is sound, what was acknowledged is there, the same
//! command again does it, once.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::dice::Dice;
use super::losses::{FIRST, VICTIMS, Victim};
use super::scene::{Kind, Scene};
use super::{KILLS, SEED, number, rounds};
use crate::common::{Output, answers, program_path};

/// How many rounds each kind of repository has by default; `.ci/chaos/kills` gives every command
/// its turn.
const ROUNDS: u64 = 2;

/// How far apart the kinds of repositories begin in the list of commands.
const APART: u64 = 6;

/// How long a command may take, also to end after a signal.
const PATIENCE: Duration = Duration::from_secs(60);

/// The results of the rounds in one kind of repository.
#[derive(Default)]
struct Tally {
    /// How many times each command was killed alive, and how many times it was over before.
    commands: BTreeMap<&'static str, (u64, u64)>,
    signals: BTreeMap<&'static str, u64>,
    /// How many times a command was refused for a lock that a dead process had left, and went
    /// through after `doctor --fix`.
    locked: u64,
}

/// How a killed command ended.
struct Ended {
    code: Option<i32>,
    output: String,
}

#[test]
fn killed_where_every_ref_is_a_file() {
    kill(Kind::Plain);
}

#[test]
fn killed_where_refs_are_packed() {
    kill(Kind::Packed);
}

#[test]
fn killed_where_objects_use_sha256() {
    kill(Kind::Sha256);
}

#[test]
fn killed_in_a_linked_worktree() {
    kill(Kind::Linked);
}

fn kill(kind: Kind) {
    let (scene, seed, began) = (Scene::new(kind), number(SEED, 0), Instant::now());
    let (mut tally, mut times) = (Tally::default(), BTreeMap::new());
    for number in rounds(KILLS, ROUNDS) {
        // Each kind begins elsewhere in the list.
        let victim = &VICTIMS[usize::try_from(number + APART * kind as u64).unwrap() % VICTIMS.len()];
        let time = *times.entry(victim.name).or_insert_with(|| measured(&scene, victim));
        eprintln!("{kind:?}: {SEED}={seed} {KILLS}={number}..{}: {}, which takes {time:?}", number + 1, victim.name);
        round(&scene, victim, time, &mut Dice::new(seed, number), &mut tally);
    }
    let Tally { commands, signals, locked } = tally;
    eprintln!(
        "{kind:?}: {:?}; killed alive and not: {commands:?}; by {signals:?}; {locked} behind a lock",
        began.elapsed()
    );
}

/// Lets a command come to its end, which tells how long it takes, and that the test would see what
/// it does.
fn measured(scene: &Scene, victim: &Victim) -> Duration {
    scene.restore();
    let before = (victim.done)(scene);
    let began = Instant::now();
    let output = again(scene, victim);
    let time = began.elapsed();
    assert!(victim.exits.contains(&output.status.unwrap()), "{}\n{output}", victim.name);
    let after = (victim.done)(scene);
    assert!((before, after) == (0, 1) || !victim.changes(), "{}: {before} became {after}\n{output}", victim.name);
    time
}

fn round(scene: &Scene, victim: &Victim, time: Duration, dice: &mut Dice, tally: &mut Tally) {
    scene.restore();
    let _ = fs::remove_file(scene.repo.path("bundle"));
    let mut done = 0;
    // The second and third die while they mend what the first left.
    for _ in 0..=dice.roll(0..3) {
        let ended = killed(scene, victim, time, dice, tally);
        assert!(!ended.output.contains("panicked at") && !matches!(ended.code, Some(70 | 101)), "{}", ended.output);
        scene.is_sound(victim.place(scene));
        let before = std::mem::replace(&mut done, (victim.done)(scene));
        let acknowledged = ended.code.is_some_and(|code| victim.exits.contains(&code)) && victim.changes();
        let least = if acknowledged && (victim.again || before == 0) { before + 1 } else { before };
        assert!((least..=before + 1).contains(&done), "{}: {before} became {done}\n{}", victim.name, ended.output);
        assert!(victim.again || done <= 1, "{} was done twice", victim.name);
    }
    let output = succeeds(scene, victim, done, tally);
    let expected = if victim.again { done + 1 } else { usize::from(victim.changes()) };
    assert_eq!((victim.done)(scene), expected, "{}\n{output}", victim.name);
    scene.is_sound(victim.place(scene));
    ends_whole(scene);
    scene.is_tidy();
}

/// Starts a command and kills it after a random part of its time.
fn killed(scene: &Scene, victim: &Victim, time: Duration, dice: &mut Dice, tally: &mut Tally) -> Ended {
    let (name, signal) =
        *dice.pick(&[("KILL", Signal::KILL), ("KILL", Signal::KILL), ("INT", Signal::INT), ("TERM", Signal::TERM)]);
    // A terminal signals all processes, a kill by hand only the program.
    let everybody = dice.once_in(2);
    let delay = Duration::from_micros(dice.roll(0..u64::try_from(time.as_micros()).unwrap() * 11 / 10 + 1));
    let path = scene.repo.path("killed.said");
    let file = File::create(&path).unwrap();
    let mut command = scene.repo.env.command(program_path(), victim.place(scene));
    command.args(arguments(scene, victim)).stdout(file.try_clone().unwrap()).stderr(file).process_group(0);
    let mut child = command.spawn().unwrap();
    std::thread::sleep(delay);
    let alive = child.try_wait().unwrap().is_none();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // A finished process cannot be killed.
    let _ = if everybody { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
    let until = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("{} did not end after {name}", victim.name);
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let counts = tally.commands.entry(victim.name).or_default();
    if alive {
        counts.0 += 1;
        *tally.signals.entry(if everybody { "the group" } else { "the program" }).or_default() += 1;
        *tally.signals.entry(name).or_default() += 1;
    } else {
        counts.1 += 1;
    }
    // Child processes, mainly git, may run a little longer.
    if dice.once_in(2) {
        scene.repo.no_process_is_left();
    }
    Ended { code: status.code(), output: fs::read_to_string(path).unwrap() }
}

/// Gives a command once more, and does what it hints at where a lock is in the way; returns how it
/// went in the end.
fn succeeds(scene: &Scene, victim: &Victim, done: usize, tally: &mut Tally) -> Output {
    let mut output = again(scene, victim);
    for _ in 0..3 {
        if output.status.is_some_and(|code| victim.exits.contains(&code)) {
            return output;
        }
        // It was done before the signal.
        if done > 0 && !victim.again && output.status == Some(1) {
            return output;
        }
        assert!(output.stderr.contains("hint: "), "{}\n{output}", victim.name);
        scene.repo.no_process_is_left();
        if output.stderr.contains("git handoff doctor --fix") {
            scene.mended();
            tally.locked += 1;
        } else {
            assert!(output.stderr.contains("run the same command again"), "{}\n{output}", victim.name);
        }
        output = again(scene, victim);
    }
    panic!("{} is still refused:\n{output}", victim.name);
}

fn again(scene: &Scene, victim: &Victim) -> Output {
    let mut command = scene.repo.env.command(program_path(), victim.place(scene));
    let output = command.args(arguments(scene, victim)).output().unwrap();
    answers::hold(&command, &output);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    Output { raw: output.stdout, stdout, stderr, status: output.status.code() }
}

fn arguments<'a>(scene: &'a Scene, victim: &'a Victim) -> impl Iterator<Item = &'a str> {
    victim.args.iter().map(|word| if *word == FIRST { scene.first.as_str() } else { word })
}

/// Drives the run that was waiting to its end, whatever was killed: each item is done once, and ran
/// once for each time it was dispatched.
fn ends_whole(scene: &Scene) {
    let repo = &scene.repo;
    let resumed = scene.handoff(&["run", "open"]);
    let cancelled = scene.entries("open", &[("kind", "item.cancelled")]);
    assert_eq!(resumed.status, Some(if cancelled > 0 { 4 } else { 0 }), "{resumed}");
    repo.ends_intact("open");
    assert_eq!(scene.entries("open", &[("kind", "item.reconciled")]), 3 - cancelled, "each item is done once");
    assert_eq!(scene.entries("open", &[("kind", "run.sealed")]), 1);
    let mut ran = repo.lines("effects");
    ran.sort();
    let fired = repo.entries("open").into_iter().filter(|entry| entry["kind"] == "item.fired");
    let fired: Vec<String> =
        fired.map(|entry| format!("{} {}", entry["item"].as_str().unwrap(), entry["attempt"])).collect();
    assert!(
        ran.iter().all(|line| fired.contains(line) || line.starts_with("fine ")),
        "{ran:?} ran, {fired:?} were dispatched"
    );
    assert!(ran.windows(2).all(|two| two[0] != two[1]), "{ran:?}: an attempt ran twice");
}
