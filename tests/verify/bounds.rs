//! The bounds of inputs from others, the same in both verifiers.

use std::fs;
use std::process::Command;

use git_handoff::model::bounds;
use git_handoff::model::protect_rule;
use git_handoff::verify::{AskAnchors, Bundle, Logs, Options};
use serde_json::Value;

use crate::common::counting::allocated;
use crate::common::repo::TestRepo;

/// The names of the bounds in `verify.mjs`, with those of the program.
const SHARED: &[(&str, u64)] = &[
    ("chain", bounds::FREE),
    ("commas", bounds::VALUES as u64),
    ("commit", bounds::COMMIT),
    ("containers", bounds::CONTAINERS as u64),
    ("exceptions", protect_rule::MOST_EXCEPTIONS as u64),
    ("file", bounds::BLOB),
    ("folder", bounds::TREE),
    ("manifest", bounds::MANIFEST),
    ("pack", bounds::PACK),
    ("packRatio", bounds::RATIO),
    ("pathspecs", protect_rule::MOST_BYTES as u64),
    ("pipeline", bounds::PIPELINE),
];

#[test]
fn both_verifiers_have_the_same_bounds() {
    let source = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/report/verify/limits.mjs")).unwrap();
    let (_, limits) = source.split_once("\nexport const limits = {\n").unwrap();
    let (limits, _) = limits.split_once("\n};\n").unwrap();
    for (name, bound) in SHARED {
        let line = limits.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}: "))).expect(name);
        let factors = line.trim_end_matches(',').split(" * ").map(|factor| factor.parse::<u64>().unwrap());
        assert_eq!(factors.product::<u64>(), *bound, "{name}");
    }
}

/// A vector with limits for the steps of `verify.mjs` and for the bytes that the program allocates.
type Input = (&'static str, u64, u64);

/// Inputs that cost more than their size, before they were bounded.
const INPUTS: &[Input] = &[
    ("clean-done", 400_000, 3_000_000),
    ("clean-forty-rules", 10_000_000, 10_000_000),
    ("clean-number-of-400000-digits", 9_000_000, 7_000_000),
    ("name-of-200000-marks", 5_000_000, 5_000_000),
    ("name-of-300000-dots", 4_000_000, 4_000_000),
];

#[test]
fn inputs_of_others_cause_work_by_their_size() {
    let file = |name: &str| format!("{}/docs/vectors/{name}.bundle", env!("CARGO_MANIFEST_DIR"));
    let mut node = Command::new("node");
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/steps.mjs"));
    let output = node.args(INPUTS.iter().map(|(name, ..)| file(name))).output().unwrap();
    let steps: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut too_much = Vec::new();
    for (name, most_steps, most_bytes) in INPUTS {
        let bundle = Bundle::open(file(name).as_ref(), 1 << 30).unwrap();
        let (options, asks) = (Options::default(), AskAnchors::none());
        let reports = || bundle.verify(&[], Logs::default(), asks, &options).unwrap().count();
        let (count, bytes) = allocated(reports);
        let steps = steps[file(name)].as_u64().unwrap();
        assert_eq!(count, 1);
        if steps > *most_steps || bytes > *most_bytes {
            too_much.push(format!("{name}: {steps} steps, {bytes} bytes"));
        }
    }
    assert!(too_much.is_empty(), "{too_much:#?}");
}

/// Compresses bytes without making them smaller (RFC 1950 and 1951).
fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = bytes.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap();
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    let (a, b) = bytes.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (a + b) % 65521)
    });
    stream.extend((b << 16 | a).to_be_bytes());
    stream
}

/// Writes a number with 7 bits in each byte, the lowest first.
fn number(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 127 {
        bytes.push(u8::try_from(number & 127).unwrap() | 128);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}

/// Writes an object of a pack: its type, its size, what names its base, and its bytes.
fn object(kind: u8, base: &[u8], bytes: &[u8]) -> Vec<u8> {
    let first = kind << 4 | u8::try_from(bytes.len() & 15).unwrap() | 128;
    [&[first][..], &number(bytes.len() >> 4), base, &zlib(bytes)].concat()
}

/// Returns a bundle with a blob of 65,535 bytes and a blob that repeats it. The size of the first
/// has some bytes without a value.
fn bundle(times: usize, padding: usize) -> Vec<u8> {
    let blob = vec![0; 0xffff];
    let copies = [0xb0, 0xff, 0xff].repeat(times);
    let mut size = number(blob.len());
    if padding > 0 {
        *size.last_mut().unwrap() |= 128;
        size.extend(vec![128; padding - 1]);
        size.push(0);
    }
    let difference = [size, number(blob.len() * times), copies].concat();
    let first = object(3, &[], &blob);
    // The distance to the base, as git counts it.
    let mut distance = first.len();
    let mut back = vec![u8::try_from(distance & 127).unwrap()];
    while distance > 127 {
        distance = (distance >> 7) - 1;
        back.insert(0, u8::try_from(distance & 127).unwrap() | 128);
    }
    let mut pack = [&b"PACK\0\0\0\x02\0\0\0\x02"[..], &first, &object(6, &back, &difference)].concat();
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&pack);
    pack.extend(hasher.try_finalize().unwrap().as_slice());
    let head = format!("# v2 git bundle\n{} refs/handoff/runs/r\n\n", "1".repeat(40));
    [head.as_bytes(), &pack].concat()
}

/// Asks both verifiers, and returns what they print of their refusal.
fn refusals(bundle: &[u8]) -> [String; 2] {
    let env = TestRepo::new().env;
    fs::write(env.path().join("x.bundle"), bundle).unwrap();
    let of_program = env.handoff(["verify", "--bundle", "../x.bundle"]).exit(1).stderr;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/report/verify.mjs");
    let of_script = Command::new("node").arg(script).arg(env.path().join("x.bundle")).output().unwrap();
    assert_eq!(of_script.status.code(), Some(1));
    [of_program, String::from_utf8(of_script.stderr).unwrap()]
}

#[test]
fn a_small_pack_that_becomes_large_is_refused_before_it_does() {
    let large = bundle(8000, 0);
    assert!(large.len() < 100_000);
    insta::assert_debug_snapshot!(refusals(&large), @r#"
    [
        "error: the objects in ../x.bundle have more than 360192000 bytes, the limit for a file of its size\n",
        "error: a pack whose objects are larger than one of its size may hold\n",
    ]
    "#);
    let padded = refusals(&bundle(8000, 25));
    assert_eq!(padded[0].replace("360217600", "360192000"), refusals(&large)[0]);
    // An allowed pack is read: no object in it has the name in the ref.
    insta::assert_debug_snapshot!(refusals(&bundle(4000, 0)), @r#"
    [
        "error: ../x.bundle is ambiguous: the ref \"refs/handoff/runs/r\" names a missing object\n",
        "error: a ref that names a missing object\n",
    ]
    "#);
}
