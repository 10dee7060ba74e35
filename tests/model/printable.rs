//! Text is made printable for terminals and JSON.

use git_handoff::model::printable::{Color, Painted, is_unprintable, json, line, lines, written_out};

/// Every character that no terminal may see.
fn hostile() -> Vec<char> {
    let all = (0..=0x0010_ffff).filter_map(char::from_u32);
    all.filter(|c| {
        matches!(*c as u32, 0..=8 | 0xb..=0x1f | 0x7f..=0x9f | 0x61c | 0x200b..=0x200f | 0x2028..=0x202e
            | 0x2060..=0x206f | 0x2800 | 0xfe00..=0xfe0f | 0xfeff | 0xfff0..=0xfffb | 0x1d159 | 0xe0000..=0xe007f)
    })
    .collect()
}

#[test]
fn nothing_hostile_is_left() {
    for c in hostile() {
        let text = format!("a{c}b");
        assert_eq!(line(&text), "a\u{fffd}b", "{c:?}");
        assert_eq!(lines(&text), "a\u{fffd}b", "{c:?}");
        assert!(!written_out(&text).contains(c) && !json(&text).contains(c), "{c:?}");
    }
    assert_eq!((line("a\nb"), lines("a\nb\tc")), ("a\u{fffd}b".to_owned(), "a\nb\tc".to_owned()));
}

/// The text that both implementations replace is the same, character by character.
#[test]
fn the_other_implementation_replaces_the_same_characters() {
    let mut node = std::process::Command::new("node");
    node.current_dir(env!("CARGO_MANIFEST_DIR")).arg("tests/interop/printable.mjs");
    let output = node.output().expect("node is installed; see .ci/prepare");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let replaced: Vec<u32> =
        String::from_utf8_lossy(&output.stdout).lines().map(|n| n.parse().expect("a number")).collect();
    let all = (0..=0x0010_ffff).filter_map(char::from_u32);
    let here: Vec<u32> = all.filter(|c| line(&c.to_string()) == "\u{fffd}").map(u32::from).collect();
    assert_eq!(replaced, here);
}

#[test]
fn ordinary_text_is_unchanged() {
    for text in ["naïve — über 10 €", "שלום עולם", "مرحبا", "日本語", "✓ ✗ ─ ▶ ·", "❤", "a\u{301}"]
    {
        assert_eq!(line(text), text);
    }
}

#[test]
fn json_means_the_same() {
    let text: String = hostile().into_iter().chain("\"\\\n\tä𝄞\u{e0041}".chars()).collect();
    let value = serde_json::json!({ text.clone(): [text] });
    let printed = json(&value.to_string());
    assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).expect("it is JSON"), value);
    assert!(!printed.chars().any(is_unprintable));
}

#[test]
fn colours_are_ours_alone() {
    let painted = Painted::default().painted("x\x1b[31m", Some(Color::Green)).words("\x1b[0m\ny").end();
    assert_eq!(painted.as_str(), "\x1b[32mx\u{fffd}[31m\x1b[0m\u{fffd}[0m\u{fffd}y\n");
    assert_eq!(Painted::default().painted("", Some(Color::Red)).as_str(), "", "no words, no colour");
}
