//! Word forms: what is left of a word when its endings are taken off. Light, deterministic, for English.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::data::PHRASES;

/// Forms that no rule leads to, with the words that they are forms of.
static IRREGULAR: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| PHRASES.pairs("irregular forms").collect());

/// Returns what is common to the forms of a word: `migrate`, `migrating`, `migrations` give the same.
pub(super) fn stem(word: &str) -> String {
    let word = word.to_lowercase().replace('\u{2019}', "'");
    let word = word.strip_suffix("'s").unwrap_or(&word);
    let word = IRREGULAR.get(word).copied().unwrap_or(word);
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    let word = plural(word);
    let word = endings(word);
    // What is left ends differently in its forms: `verif(y)`, `verif(ied)`, `plan`, `plann(ing)`, `us(e)`.
    let mut stem = word.trim_end_matches('e').to_owned();
    if let Some(rest) = stem.strip_suffix('y') {
        stem = format!("{rest}i");
    }
    let bytes = stem.as_bytes();
    if bytes.len() > 2 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2] {
        stem.pop();
    }
    stem
}

fn plural(word: &str) -> String {
    if let Some(rest) = word.strip_suffix("ies").filter(|rest| rest.len() > 1) {
        return format!("{rest}y");
    }
    for ending in ["sses", "shes", "ches", "xes", "zes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    if word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is") {
        return word[..word.len() - 1].to_owned();
    }
    word.to_owned()
}

fn endings(word: String) -> String {
    let mut word = word;
    for ending in ["ing", "ied", "ed", "ion", "ly"] {
        let Some(rest) = word.strip_suffix(ending).filter(|rest| leaves_a_word(rest)) else { continue };
        word = if ending == "ied" { format!("{rest}y") } else { rest.to_owned() };
        break;
    }
    word = word.trim_end_matches('e').to_owned();
    for ending in ["at", "ment"] {
        if let Some(rest) = word.strip_suffix(ending).filter(|rest| rest.len() >= 4) {
            word = rest.to_owned();
        }
    }
    if let Some(rest) = word.strip_suffix("ific") {
        word = format!("{rest}ify");
    }
    word
}

fn leaves_a_word(rest: &str) -> bool {
    rest.len() >= 3 && rest.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn forms_of_a_word_are_one() {
        for forms in [
            &["migrate", "migrates", "migrated", "migrating", "migration", "migrations"][..],
            &["implement", "implements", "implemented", "implementing", "implementation"],
            &["verify", "verifies", "verified", "verifying", "verification"],
            &["confirm", "confirmed", "confirming", "confirmation"],
            &["deploy", "deployed", "deploying", "deployment"],
            &["write", "wrote", "written", "writing"],
            &["run", "ran", "running", "runs"],
            &["fix", "fixes", "fixed", "fixing"],
            &["schema", "schemas"],
            &["create", "created", "creating", "creation"],
            &["install", "installed", "installing"],
            &["document", "documents", "documentation", "docs"],
            &["validate", "validated", "validation"],
        ] {
            for form in forms {
                assert_eq!(stem(form), stem(forms[0]), "{form}");
            }
        }
    }

    #[test]
    fn other_words_stay_apart() {
        for (one, other) in
            [("string", "strip"), ("audit", "edit"), ("test", "text"), ("staging", "stage-two"), ("draft", "drift")]
        {
            assert_ne!(stem(one), stem(other));
        }
    }
}
