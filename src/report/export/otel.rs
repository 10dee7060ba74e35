//! OTLP traces as JSON: a span for the run, and below it one for each attempt.
//!
//! Format: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use std::fmt::Display;

use serde::Serialize;
use serde_json::{Value, json};

use crate::ledger::chain::Link;
use crate::model::digest::{Digest, hex};
use crate::model::entry::{Event, InputRef};
use crate::model::plan::Source;
use crate::model::time::Moment;

use super::facts::{Attempt, Facts};
use super::tool_version;

/// `SPAN_KIND_INTERNAL`
const INTERNAL: u8 = 1;

/// The status codes of a span.
const UNSET: u8 = 0;
const OK: u8 = 1;
const ERROR: u8 = 2;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TracesData {
    resource_spans: [ResourceSpans; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans {
    resource: Resource,
    scope_spans: [ScopeSpans; 1],
}

#[derive(Serialize)]
struct Resource {
    attributes: Vec<KeyValue>,
}

#[derive(Serialize)]
struct ScopeSpans {
    scope: Scope,
    spans: Vec<Span>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names are those of the format")]
struct Span {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<KeyValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<SpanEvent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<SpanLink>,
    status: Status,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpanEvent {
    time_unix_nano: String,
    name: &'static str,
    attributes: Vec<KeyValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpanLink {
    trace_id: String,
    span_id: String,
    attributes: Vec<KeyValue>,
}

#[derive(Serialize)]
struct Status {
    code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
struct KeyValue {
    key: String,
    value: AnyValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::enum_variant_names, reason = "the names are those of the format")]
enum AnyValue {
    StringValue(String),
    /// A 64-bit integer, which is a string in JSON.
    IntValue(String),
    ArrayValue {
        values: Vec<AnyValue>,
    },
}

/// The attributes of a span or a resource.
#[derive(Default)]
struct Attributes(Vec<KeyValue>);

impl Attributes {
    fn put(&mut self, key: &str, value: AnyValue) {
        self.0.push(KeyValue { key: key.to_owned(), value });
    }

    fn text(&mut self, key: &str, value: &dyn Display) {
        self.put(key, AnyValue::StringValue(value.to_string()));
    }

    fn integer(&mut self, key: &str, value: impl Into<i128>) {
        // The format has signed 64 bits.
        let value = value.into().clamp(i64::MIN.into(), i64::MAX.into());
        self.put(key, AnyValue::IntValue(value.to_string()));
    }
}

/// Returns the trace of a run.
pub(super) fn export(facts: &Facts<'_>) -> Value {
    let mut resource = Attributes::default();
    resource.text("service.name", &"git-handoff");
    resource.text("service.version", &tool_version(facts.document.tool));
    facts.origin.pairs().into_iter().for_each(|(name, value)| resource.text(&format!("handoff.{name}"), &value));
    let mut spans = vec![run_span(facts)];
    spans.extend(facts.attempts.iter().map(|attempt| attempt_span(facts, attempt)));
    let scope = Scope { name: "git-handoff", version: tool_version(facts.document.tool).to_owned() };
    let scope_spans = [ScopeSpans { scope, spans }];
    json!(TracesData { resource_spans: [ResourceSpans { resource: Resource { attributes: resource.0 }, scope_spans }] })
}

fn run_span(facts: &Facts<'_>) -> Span {
    let document = &facts.document;
    let mut attributes = Attributes::default();
    attributes.text("handoff.plan", &document.plan);
    attributes.text("handoff.base", &document.base);
    attributes.text("handoff.queue", &document.queue);
    attributes.text("handoff.submitted_by", &document.submitted_by);
    attributes.integer("handoff.items", document.outcome.total);
    for (count, word) in std::iter::once((document.outcome.done, "done")).chain(document.outcome.others()) {
        attributes.integer(&format!("handoff.items.{}", word.replace(' ', "_")), count);
    }
    let first = &facts.run.links[0];
    let last = facts.run.links.last().unwrap_or(first);
    let green = document.outcome.is_green();
    Span {
        trace_id: trace_id(facts),
        span_id: span_id(&first.hash),
        parent_span_id: None,
        name: format!("run {}", document.run),
        kind: INTERNAL,
        start_time_unix_nano: nanos(first.entry.at),
        end_time_unix_nano: nanos(last.entry.at.max(first.entry.at)),
        attributes: attributes.0,
        events: facts.run.links.iter().filter_map(moment).collect(),
        links: Vec::new(),
        status: Status { code: if green { OK } else { ERROR }, message: None },
    }
}

fn attempt_span(facts: &Facts<'_>, attempt: &Attempt<'_>) -> Span {
    let summary = &attempt.summary;
    let last = facts.run.links.last().map_or(summary.started_at, |link| link.entry.at);
    let end = summary.ended_at.unwrap_or(last).max(summary.started_at);
    let code = match summary.status {
        "done" if !summary.red => OK,
        "cancelled" | "running" => UNSET,
        _ => ERROR,
    };
    let message = attempt.reason().filter(|_| code == ERROR).map(str::to_owned);
    Span {
        trace_id: trace_id(facts),
        span_id: span_id(&summary.fired.hash),
        parent_span_id: Some(span_id(&facts.run.links[0].hash)),
        name: attempt.fired.item.to_string(),
        kind: INTERNAL,
        start_time_unix_nano: nanos(summary.started_at),
        end_time_unix_nano: nanos(end),
        attributes: attributes(facts, attempt).0,
        events: Vec::new(),
        links: links(facts, attempt),
        status: Status { code, message },
    }
}

fn attributes(facts: &Facts<'_>, attempt: &Attempt<'_>) -> Attributes {
    let mut attributes = Attributes::default();
    attributes.text("handoff.item", &attempt.fired.item);
    attributes.integer("handoff.attempt", attempt.fired.attempt);
    attributes.text("handoff.status", &attempt.word());
    attributes.text("handoff.actor", &attempt.summary.actor);
    attributes.text("handoff.executor", &attempt.manifest.executor);
    attributes.text("handoff.sandbox", &attempt.manifest.claims.sandbox);
    attributes.text("handoff.entry", &attempt.entry());
    let mut optional = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            attributes.text(key, &value);
        }
    };
    optional("handoff.subagent", attempt.manifest.subagent.clone());
    optional("handoff.reason", attempt.reason().map(str::to_owned));
    optional("handoff.superseded_by", facts.run.state.replaced_by(attempt.at).map(ToString::to_string));
    if let Some(result) = attempt.result() {
        optional("handoff.reused", result.reused.as_ref().map(ToString::to_string));
        optional("handoff.grade", result.grade.map(|grade| json!(grade).as_str().unwrap_or_default().to_owned()));
        for (key, product) in &result.products {
            optional(&format!("handoff.product.{key}"), Some(product.sha256.to_string()));
        }
    }
    if let Some(code) = attempt.end.as_ref().and_then(|end| end.exit).and_then(|exit| exit.code) {
        attributes.integer("process.exit.code", code);
    }
    add_claims(&mut attributes, attempt);
    attributes
}

/// Adds the worker's claims, and the list of their names.
fn add_claims(attributes: &mut Attributes, attempt: &Attempt<'_>) {
    let Some(claims) = attempt.claims() else { return };
    let before = attributes.0.len();
    if let Some(model) = &claims.model {
        attributes.text("gen_ai.response.model", &model);
    }
    if let Some(session) = &claims.session {
        attributes.text("gen_ai.conversation.id", &session);
    }
    if let Some(denials) = claims.permission_denials {
        attributes.integer("handoff.permission_denials", denials);
    }
    if let Some(usage) = &claims.usage {
        let numbers = [
            ("gen_ai.usage.input_tokens", usage.input_tokens),
            ("gen_ai.usage.output_tokens", usage.output_tokens),
            ("handoff.cached_tokens", usage.cached_tokens),
        ];
        for (key, number) in numbers {
            if let Some(number) = number {
                attributes.integer(key, number);
            }
        }
        if let Some(cost) = usage.cost_usd {
            attributes.text("handoff.cost_usd", &cost);
        }
    }
    let values = attributes.0[before..].iter().map(|claim| AnyValue::StringValue(claim.key.clone())).collect();
    attributes.put("handoff.claims", AnyValue::ArrayValue { values });
}

/// Returns a link to each attempt whose products were consumed.
fn links(facts: &Facts<'_>, attempt: &Attempt<'_>) -> Vec<SpanLink> {
    let link = |key: &dyn Display, input: &InputRef| {
        let Source::Item(id) = &input.from else { return None };
        let producer = facts.result_of(facts.run.state.graph.position(id)?)?;
        let mut attributes = Attributes::default();
        attributes.text("handoff.input", &key);
        attributes.text("handoff.product", &input.select.product_key());
        attributes.text("handoff.sha256", &input.digest);
        let span_id = span_id(&producer.summary.fired.hash);
        Some(SpanLink { trace_id: trace_id(facts), span_id, attributes: attributes.0 })
    };
    attempt.fired.input_refs.iter().filter_map(|(key, input)| link(key, input)).collect()
}

/// Returns an entry that begins or ends no attempt as an event.
fn moment(link: &Link) -> Option<SpanEvent> {
    let entry = &link.entry;
    match &entry.event {
        Event::ItemFired(_) | Event::ItemRetried(_) => return None,
        Event::ItemReconciled(e) if e.attempt > 0 => return None,
        _ => {}
    }
    let mut attributes = Attributes::default();
    attributes.text("handoff.entry", &link.hash);
    attributes.integer("handoff.seq", i128::from(entry.seq));
    attributes.text("handoff.actor", &entry.actor);
    attributes.text("handoff.subject", &entry.subject());
    if let Some((item, attempt)) = entry.event.item() {
        attributes.text("handoff.item", &item);
        attributes.integer("handoff.attempt", attempt);
    }
    match &entry.event {
        Event::ItemDecided(e) => {
            attributes.text("handoff.decision", &e.decision.word());
            attributes.text("handoff.by", &e.by);
        }
        Event::DocumentWritten(e) => attributes.text("handoff.sha256", &e.sha256),
        Event::ItemSkipped(e) | Event::ItemCancelled(e) => attributes.text("handoff.reason", &e.reason),
        Event::ItemReconciled(e) => {
            if let Some(reason) = &e.reason {
                attributes.text("handoff.reason", &reason);
            }
        }
        _ => {}
    }
    Some(SpanEvent { time_unix_nano: nanos(entry.at), name: entry.event.kind(), attributes: attributes.0 })
}

/// Returns the first 16 bytes of entry 0's leaf hash.
fn trace_id(facts: &Facts<'_>) -> String {
    hex(&facts.run.links[0].hash.as_bytes()[..16])
}

/// Returns the first 8 bytes of an entry's leaf hash.
fn span_id(entry: &Digest) -> String {
    hex(&entry.as_bytes()[..8])
}

/// Formats nanoseconds since 1970. Earlier times become 0, because the format has none.
fn nanos(at: Moment) -> String {
    (i128::from(at.millis().max(0)) * 1_000_000).to_string()
}
