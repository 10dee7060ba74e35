//! One command in all weathers: perhaps with a limit, with a clock that is wrong or put right
//! meanwhile, perhaps killed.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::Soak;
use crate::chaos::dice::Dice;
use crate::common::{answers, program_path};

/// How long a command may run before it gets a signal.
const LET_BE: Duration = Duration::from_secs(20);

/// How long it may take to end after a signal.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where distributions have the library that gives a process another clock.
const OTHER_CLOCKS: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
];

/// Limits of a shell.
const LIMITS: [(&str, &[u64]); 3] =
    [("-n", &[12, 24, 48, 96]), ("-u", &[8, 32]), ("-v", &[36_000, 90_000, 200_000, 500_000])];

/// By how much a clock is wrong, and may be put right at any moment.
const STEPS: [&str; 6] = ["-3y", "-1h", "-20s", "+5s", "+20s", "+90s"];

/// How a command ended.
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) printed: String,
    pub(super) stderr: String,
}

impl Ended {
    pub(super) fn is_done(&self) -> bool {
        self.code == Some(0)
    }
}

/// Numbers the commands.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Returns the library that gives a process another clock, where there is one.
pub(super) fn other_clock() -> Option<&'static str> {
    OTHER_CLOCKS.into_iter().find(|path| Path::new(path).exists())
}

impl Soak {
    /// Gives a command in whatever weather the dice say.
    pub(super) fn in_all_weathers(&self, dice: &mut Dice, place: &str, args: &[&str]) -> Ended {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let limit = dice.once_in(8).then(|| {
            let (flag, values) = *dice.pick(&LIMITS);
            (flag, *dice.pick(values))
        });
        let mut command = match limit {
            None => self.plain(program_path(), place),
            Some((flag, value)) => {
                let mut command = self.plain("sh", place);
                command.args(["-c", &format!("ulimit {flag} {value}; exec \"$0\" \"$@\""), program_path()]);
                command
            }
        };
        command.args(args).process_group(0);
        let clock = self.other_clock.filter(|_| dice.once_in(8)).map(|library| (library, *dice.pick(&STEPS)));
        let stepped = self.path(&format!("said/{number}.clock"));
        if let Some((library, step)) = clock {
            fs::write(&stepped, step).unwrap();
            command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &stepped);
            command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let signal = [("KILL", Signal::KILL), ("KILL", Signal::KILL), ("INT", Signal::INT), ("TERM", Signal::TERM)];
        let kill = dice.once_in(3).then(|| {
            let longest = if args[0] == "run" { 2_000_000 } else { 90_000 };
            (Duration::from_micros(dice.roll(0..longest)), *dice.pick(&signal), dice.once_in(2))
        });
        let description =
            format!("{number} in {place}: {} {limit:?} {:?} {kill:?}", args.join(" "), clock.map(|clock| clock.1));
        let mut ledger = self.ledger();
        ledger.tell(description.clone());
        ledger.count("commands", args[0]);
        if let Some((flag, _)) = limit {
            ledger.count("limits", flag);
        }
        if let Some((_, step)) = clock {
            ledger.count("clocks", step);
        }
        drop(ledger);
        let paths = [self.path(&format!("said/{number}.out")), self.path(&format!("said/{number}.err"))];
        command.stdout(File::create(&paths[0]).unwrap()).stderr(File::create(&paths[1]).unwrap());
        let mut child = command.spawn().unwrap();
        let began = Instant::now();
        let mut pending_kill = kill;
        let mut corrected = clock.is_none();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            let elapsed = began.elapsed();
            if let Some((_, (name, kill_signal), everybody)) = pending_kill.filter(|(delay, ..)| elapsed >= *delay) {
                pending_kill = None;
                send(&child, kill_signal, everybody);
                let mut second_ledger = self.ledger();
                second_ledger.count("kills", args[0]);
                second_ledger.count("signals", name);
            }
            // The clock is put right while it runs.
            if !corrected && elapsed > Duration::from_millis(200) {
                corrected = true;
                let _ = fs::write(&stepped, "+0s");
            }
            if elapsed >= LET_BE && pending_kill.is_none() && elapsed < LET_BE + Duration::from_millis(50) {
                send(&child, Signal::TERM, false);
                self.ledger().count("ended early", args[0]);
            }
            assert!(elapsed < LET_BE + PATIENCE, "it does not end: {description}");
            std::thread::sleep(Duration::from_millis(2));
        };
        self.ended(status, &description, limit.is_some(), &paths)
    }

    fn ended(&self, status: ExitStatus, description: &str, limited: bool, paths: &[std::path::PathBuf; 2]) -> Ended {
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        let ended = Ended { code: status.code(), printed: read(&paths[0]), stderr: read(&paths[1]) };
        let panicked = ended.stderr.contains("panicked at") || matches!(ended.code, Some(70 | 101));
        assert!(!panicked || limited, "a panic in {description}:\n{}", ended.stderr);
        let mut ledger = self.ledger();
        ledger.tell(format!(
            "    {status}: {}",
            ended.stderr.lines().rfind(|line| line.starts_with("error")).unwrap_or_default()
        ));
        for line in ended.stderr.lines().filter(|line| line.contains("could not be saved and stays in")) {
            ledger.count("work put aside", line.rsplit_once("-unsaved: ").map_or(line, |(_, why)| why));
        }
        if panicked {
            ledger.count(
                "panics under a limit",
                ended.stderr.lines().find(|line| line.contains("panicked")).unwrap_or("?"),
            );
        }
        for path in paths {
            fs::remove_file(path).unwrap();
        }
        ended
    }

    /// Returns a command under the clock that the machine has.
    pub(super) fn plain(&self, program: &str, place: &str) -> Command {
        let mut command = self.repo.env.command(program, place);
        for pinned in ["HANDOFF_CLOCK", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            command.env_remove(pinned);
        }
        command
    }

    /// Gives a command in fine weather.
    #[track_caller]
    pub(super) fn calmly(&self, program: &str, place: &str, args: &[&str]) -> Ended {
        let mut command = self.plain(program, place);
        let output = command.args(args).output().unwrap();
        answers::hold(&command, &output);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended { code: output.status.code(), printed: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Gives a command in fine weather that must end with 0; returns what it prints.
    #[track_caller]
    pub(super) fn succeeds(&self, program: &str, place: &str, args: &[&str]) -> String {
        let ended = self.calmly(program, place, args);
        assert!(ended.is_done(), "{program} {args:?} in {place}: {:?}\n{}{}", ended.code, ended.printed, ended.stderr);
        ended.printed
    }
}

/// Sends a signal to a program, or to everybody whom it started as well, as a terminal does.
fn send(child: &Child, signal: Signal, everybody: bool) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // A finished process cannot be signalled.
    let _ = if everybody { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
}
