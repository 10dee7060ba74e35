//! Fills the page's template with facts.
//!
//! The template is filled twice: here, and by the page's own script, which compares the results.
//! So the language is small enough for two implementations that agree to the byte:
//!
//! - `{{name}}` inserts a string or a number, made printable and escaped for HTML;
//! - `{{{name}}}` inserts a string as it is;
//! - `{{#name}}…{{/name}}` repeats its content for each element of an array, or shows it once for
//!   any other value that is neither missing, `false` nor an empty string;
//! - `{{^name}}…{{/name}}` shows its content in the other cases.
//!
//! A name is looked up in the innermost element that has it; `.` is the element itself.

use serde_json::Value;

use crate::model::printable;

/// A part of a template.
enum Part<'t> {
    Text(&'t str),
    Value { name: &'t str, raw: bool },
    Section { name: &'t str, inverted: bool, parts: Vec<Self> },
}

/// Returns the template filled with the facts, or `None` if the template's tags do not match.
pub(super) fn fill(template: &str, facts: &Value) -> Option<String> {
    let mut rest = template;
    let parts = parse(&mut rest, None)?;
    let mut filled = String::with_capacity(template.len() * 2);
    write(&parts, &mut vec![facts], &mut filled);
    Some(filled)
}

/// Parses up to the end of the section `within`, or to the end of the template.
fn parse<'t>(rest: &mut &'t str, within: Option<&str>) -> Option<Vec<Part<'t>>> {
    let mut parts = Vec::new();
    loop {
        let Some((text, after)) = rest.split_once("{{") else {
            parts.push(Part::Text(rest));
            return within.is_none().then_some(parts);
        };
        parts.push(Part::Text(text));
        if let Some(after) = after.strip_prefix('{') {
            let (name, after) = after.split_once("}}}")?;
            parts.push(Part::Value { name, raw: true });
            *rest = after;
            continue;
        }
        let (tag, after) = after.split_once("}}")?;
        *rest = after;
        match tag.split_at_checked(1)? {
            ("/", name) => return (within == Some(name)).then_some(parts),
            (mark @ ("#" | "^"), name) => {
                let inverted = mark == "^";
                parts.push(Part::Section { name, inverted, parts: parse(rest, Some(name))? });
            }
            _ => parts.push(Part::Value { name: tag, raw: false }),
        }
    }
}

fn write(parts: &[Part<'_>], stack: &mut Vec<&Value>, filled: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Value { name, raw } => match look_up(stack, name) {
                Some(Value::String(text)) if *raw => filled.push_str(text),
                Some(Value::String(text)) => escape(&printable::lines(text), filled),
                Some(Value::Number(number)) => filled.push_str(&number.to_string()),
                _ => {}
            },
            Part::Section { name, inverted, parts: inner } => {
                let value = look_up(stack, name);
                match value.filter(|value| is_shown(value)) {
                    None if *inverted => write(inner, stack, filled),
                    Some(Value::Array(elements)) if !inverted => {
                        for element in elements {
                            stack.push(element);
                            write(inner, stack, filled);
                            stack.pop();
                        }
                    }
                    Some(value) if !inverted => {
                        stack.push(value);
                        write(inner, stack, filled);
                        stack.pop();
                    }
                    _ => {}
                }
            }
        }
    }
}

fn look_up<'v>(stack: &[&'v Value], name: &str) -> Option<&'v Value> {
    if name == "." {
        return stack.last().copied();
    }
    stack.iter().rev().find_map(|value| value.get(name))
}

fn is_shown(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => true,
    }
}

fn escape(text: &str, filled: &mut String) {
    for c in text.chars() {
        match c {
            '&' => filled.push_str("&amp;"),
            '<' => filled.push_str("&lt;"),
            '>' => filled.push_str("&gt;"),
            '"' => filled.push_str("&quot;"),
            '\'' => filled.push_str("&#39;"),
            c => filled.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fill;
    use serde_json::json;

    #[test]
    fn values_are_escaped_and_made_printable() {
        let facts = json!({ "a": "<b> & \"c\"\u{202e}", "n": 3 });
        let filled = fill("{{a}} {{n}} {{{a}}}", &facts).unwrap();
        assert_eq!(filled, "&lt;b&gt; &amp; &quot;c&quot;\u{fffd} 3 <b> & \"c\"\u{202e}");
    }

    #[test]
    fn sections_repeat_and_look_outwards() {
        let facts = json!({ "x": "X", "list": [{ "y": 1 }, { "y": 2, "x": "Z" }], "none": [], "words": ["p", "q"] });
        let template =
            "{{#list}}{{x}}{{y}};{{/list}}{{^none}}empty{{/none}}{{#none}}-{{/none}}{{#words}}{{.}}{{/words}}";
        assert_eq!(fill(template, &facts).unwrap(), "X1;Z2;emptypq");
    }

    #[test]
    fn tags_must_match() {
        assert!(fill("{{#a}}{{/b}}", &json!({})).is_none());
        assert!(fill("{{#a}}", &json!({})).is_none());
        assert!(fill("{{a", &json!({})).is_none());
    }
}
