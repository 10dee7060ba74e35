//! Tests of time stamps that are changed, and of their times.

use super::*;

/// Made by OpenSSL 3.0 for this root, by an authority whose certificates have expired.
const TOKEN: &[u8] = include_bytes!("../../../../../tests/fixtures/timestamp.tst");
const CA: &[u8] = include_bytes!("../../../../../tests/fixtures/timestamp-ca.pem");
const ROOT: &str = "sha256:7af1bd921527be925e9b5a75533b3b952313930de686d873ec8709cb50ad3bd5";

#[test]
fn whatever_is_changed_in_a_token_it_proves_the_same_or_nothing() {
    let roots = Roots::read(CA).expect("a certificate");
    let root: Digest = ROOT.parse().expect("a digest");
    let at = check(TOKEN, &root, &roots).expect("it holds").at;
    let mut same = 0;
    for (byte, bit) in (0..TOKEN.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
        let mut token = TOKEN.to_vec();
        token[byte] ^= 1 << bit;
        if let Ok(stamp) = check(&token, &root, &roots) {
            assert_eq!(stamp.at, at, "byte {byte}, bit {bit}");
            same += 1;
        }
    }
    // Versions and the list of algorithms are not signed.
    assert!(same < 100, "{same} of {} changes go unnoticed", TOKEN.len() * 8);
    for length in 0..TOKEN.len() {
        assert!(check(&TOKEN[..length], &root, &roots).is_err());
    }
    assert!(matches!(check(TOKEN, &Digest::compute(b"another"), &roots), Err(Error::Imprint)));
}

#[test]
fn times_are_read_in_every_form_that_is_allowed() {
    assert_eq!(read_time("20260604020000Z"), parse_moment("2026-06-04T02:00:00.000Z"));
    assert_eq!(read_time("20260604020000.5Z"), parse_moment("2026-06-04T02:00:01.000Z"));
    assert_eq!(read_time("20260604020000.0000000000Z"), parse_moment("2026-06-04T02:00:00.000Z"));
    assert_eq!(read_time("20260604020000.0000000001Z"), parse_moment("2026-06-04T02:00:01.000Z"));
    for bad in [
        "20260604020000",
        "20260604020000+0200",
        "202606040200Z",
        "20261304020000Z",
        "20260604020000.Z",
        "2026060402000xZ",
    ] {
        assert_eq!(read_time(bad), None, "{bad}");
    }
}

fn parse_moment(text: &str) -> Option<Moment> {
    text.parse::<Moment>().ok()
}

fn read_time(text: &str) -> Option<Moment> {
    let (at, micros) = gen_time(&Any::new(Tag::GeneralizedTime, text.as_bytes()).expect("short")).ok()?;
    latest(at, micros, None).ok()
}

#[test]
fn a_clock_may_have_been_behind_by_as_much_as_its_token_says() {
    let at = "2026-06-04T02:00:00.000Z".parse::<Moment>().expect("a moment");
    let latest = |micros, seconds, millis, small| {
        let accuracy = Accuracy { seconds, millis, micros: small };
        latest(at, micros, Some(&accuracy)).ok().map(|late| late.millis() - at.millis())
    };
    assert_eq!(latest(0, None, None, None), Some(0));
    assert_eq!(latest(0, Some(3600), None, None), Some(3_600_000));
    assert_eq!(latest(500_000, Some(1), Some(500), None), Some(2000));
    assert_eq!(latest(500_000, Some(1), Some(500), Some(1)), Some(3000));
    for (seconds, millis, small) in [(Some(u64::MAX), None, None), (None, Some(-1), None), (None, None, Some(1000))] {
        assert_eq!(latest(0, seconds, millis, small), None);
    }
}
