//! The document of settings, generated from the table: `HANDOFF_UPDATE_DOCS=1 cargo nextest run
//! config::` updates it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use git_handoff::repository::config::SETTINGS;
use git_handoff::share::anchor;

use super::{full_name, names};
use crate::common::part;

#[test]
fn the_document_shows_every_setting() {
    let mut text = String::new();
    for group in SETTINGS {
        writeln!(text, "\n## {}\n\n| setting | value | default | does |\n|---|---|---|---|", group.title).unwrap();
        for entry in group.entries {
            let names: Vec<_> = entry.names.iter().map(|name| format!("`{name}`")).collect();
            let mark = if entry.tracked { "" } else { " ¹" };
            let row = [names.join("<br>") + mark, entry.kind(), entry.default.into(), entry.sentence.into()];
            assert!(row.iter().all(|cell| !cell.is_empty() && !cell.contains(['|', '\n'])), "{row:?}");
            writeln!(text, "| {} |", row.join(" | ")).unwrap();
        }
    }
    part::check("docs/reference/settings.md", "<!-- settings -->", &format!("{text}\n"));
}

#[test]
fn every_setting_has_one_name() {
    let mut known_names = BTreeMap::new();
    for name in names() {
        assert!(name.starts_with("handoff."), "{name}");
        let other = known_names.insert(full_name(name, "x").to_ascii_lowercase(), name);
        assert_eq!(other, None, "{name} stands there twice");
    }
}

#[test]
fn every_setting_of_an_anchor_is_one_of_some_kind_of_anchor() {
    let value = |field: &str| match field {
        "guarantee" => "detect",
        "timeout" | "retentionDays" => "7",
        "url" => "https://example.com",
        "endpoint" => "https://s3.example.com",
        _ => "some",
    };
    for field in names().filter_map(|name| name.strip_prefix("handoff.anchor.<name>.")).filter(|field| *field != "type")
    {
        let takes = |needs: &[&str]| {
            let mut settings: BTreeMap<String, String> =
                needs[1..].iter().map(|need| ((*need).to_owned(), value(need).to_owned())).collect();
            settings.insert("type".into(), needs[0].into());
            settings.insert(field.to_ascii_lowercase(), value(field).into());
            anchor::read("vault", &settings, &[]).is_ok()
        };
        let kinds = [&["git", "url"][..], &["s3", "bucket"], &["rfc3161", "url", "ca"]];
        assert!(kinds.into_iter().any(takes), "no kind of anchor has {field}");
    }
}
