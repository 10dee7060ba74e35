"""Checks exports in the formats of other tools with the tools' own libraries, and holds that broken ones fail.

usage: check_formats.py <folder> <ref of the run> <leaf hash of its seal>

The folder has a file for each format, named as the format. Needs opentelemetry-proto, junitparser and
cyclonedx-python-lib[json-validation] from PyPI. Agent Trace and Git AI have no library there: their rules are below,
by version 0.1.0 of github.com/cursor/agent-trace and version 3.0.0 of the standard in github.com/git-ai-project/git-ai.
Nothing here knows git-handoff but the field that says where the evidence is.
"""

import base64
import copy
import datetime
import json
import pathlib
import re
import sys
import uuid
import xml.etree.ElementTree as ElementTree

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf.json_format import ParseDict
from junitparser import xunit2
from opentelemetry.proto.trace.v1.trace_pb2 import Status, TracesData


def fields(value, required, optional, where):
    """Holds that an object has these fields and no others; the values are types."""
    assert isinstance(value, dict), f"{where} is no object"
    known = required | optional
    for name in required:
        assert name in value, f"{where} lacks {name}"
    for name, held in value.items():
        assert name in known, f"{where} has the unknown field {name}"
        assert type(held) is known[name], f"{where}.{name} is no {known[name].__name__}"


def check_contributor(value):
    fields(value, {"type": str}, {"model_id": str}, "contributor")
    assert value["type"] in ("human", "ai", "mixed", "unknown")
    assert len(value.get("model_id", "")) <= 250


def check_range(value):
    fields(value, {"start_line": int, "end_line": int}, {"content_hash": str, "contributor": dict}, "range")
    assert 1 <= value["start_line"] <= value["end_line"]


def check_agent_trace(text):
    """Section 6.1 of the specification, with no fields beyond it."""
    records = [json.loads(line) for line in text.splitlines()]
    for record in records:
        required = {"version": str, "id": str, "timestamp": str, "files": list}
        fields(record, required, {"vcs": dict, "tool": dict, "metadata": dict}, "record")
        assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", record["version"])
        assert str(uuid.UUID(record["id"])) == record["id"] and uuid.UUID(record["id"]).variant == uuid.RFC_4122
        assert datetime.datetime.fromisoformat(record["timestamp"]).tzinfo
        if "vcs" in record:
            fields(record["vcs"], {"type": str, "revision": str}, {}, "vcs")
            assert record["vcs"]["type"] == "git" and re.fullmatch(
                r"[0-9a-f]{40}|[0-9a-f]{64}", record["vcs"]["revision"]
            )
        fields(record["tool"], {"name": str, "version": str}, {}, "tool")
        for file in record["files"]:
            fields(file, {"path": str, "conversations": list}, {}, "file")
            assert file["path"] and not file["path"].startswith("/")
            for conversation in file["conversations"]:
                fields(
                    conversation, {"ranges": list}, {"url": str, "contributor": dict, "related": list}, "conversation"
                )
                check_contributor(conversation["contributor"])
                for one in conversation["ranges"]:
                    check_range(one)
    assert len({record["id"] for record in records}) == len(records), "two records have one id"
    evidence = [record["metadata"]["com.github.git-handoff"]["evidence"] for record in records]
    return len(records), [(one["ref"], one["seal"]) for one in evidence]


def check_entry(line, metadata):
    """An attestation entry: two spaces, a key, a space, and ascending ranges without spaces."""
    found = re.fullmatch(r"  (s_[0-9a-f]{14})::t_[0-9a-f]{14} ([0-9,-]+)", line)
    assert found, f"{line!r} is no entry"
    assert found[1] in metadata["sessions"], f"{found[1]} is no session"
    last = 0
    for part in found[2].split(","):
        ends = re.fullmatch(r"([1-9][0-9]*)(?:-([1-9][0-9]*))?", part)
        assert ends and last < int(ends[1]) <= int(ends[2] or ends[1]), f"{line!r} does not ascend"
        last = int(ends[2] or ends[1])


def check_git_ai(text):
    """Sections 1.2.2 to 1.2.4 of the standard."""
    lines = text.splitlines()
    divider = lines.index("---")
    metadata = json.loads("\n".join(lines[divider + 1 :]))
    required = {"schema_version": str, "base_commit_sha": str, "prompts": dict}
    fields(metadata, required, {"git_ai_version": str, "sessions": dict, "humans": dict}, "metadata")
    assert metadata["schema_version"] == "authorship/3.0.0"
    assert re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", metadata["base_commit_sha"])
    for key, session in metadata["sessions"].items():
        assert re.fullmatch(r"s_[0-9a-f]{14}", key)
        fields(session, {"agent_id": dict}, {"human_author": str, "custom_attributes": dict}, key)
        fields(session["agent_id"], {"tool": str, "id": str, "model": str}, {}, "agent_id")
        assert all(type(value) is str for value in session["custom_attributes"].values())
    files, entries = 0, 0
    for line in lines[:divider]:
        if line.startswith("  "):
            assert files, "an entry has no file"
            check_entry(line, metadata)
            entries += 1
            continue
        files += 1
        quoted = re.fullmatch(r'"([^"]+)"', line)
        assert quoted or re.fullmatch(r'[^"\s]+', line), f"{line!r} is no path"
    assert files <= entries, "a file has no entry"
    attributes = [session["custom_attributes"] for session in metadata["sessions"].values()]
    return entries, [(one["handoff.ref"], one["handoff.seal"]) for one in attributes]


def as_protobuf(value):
    """Writes ids as protobuf's own JSON has bytes; OTLP has them in hexadecimal."""
    if isinstance(value, list):
        return [as_protobuf(one) for one in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        name: base64.b64encode(bytes.fromhex(held)).decode() if name in ids else as_protobuf(held)
        for name, held in value.items()
    }


def check_otel(text):
    """Parses with the protocol's own classes, which refuse unknown fields."""
    data = ParseDict(as_protobuf(json.loads(text)), TracesData())
    (resource,) = data.resource_spans
    spans = [span for scope in resource.scope_spans for span in scope.spans]
    (root,) = [span for span in spans if not span.parent_span_id]
    known = {span.span_id for span in spans}
    assert len(known) == len(spans), "two spans have one id"
    for span in spans:
        assert len(span.trace_id) == 16 and len(span.span_id) == 8 and any(span.trace_id) and any(span.span_id)
        assert span.trace_id == root.trace_id and span.parent_span_id in (b"", root.span_id)
        assert span.name and 0 < span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.status.code in (Status.STATUS_CODE_UNSET, Status.STATUS_CODE_OK, Status.STATUS_CODE_ERROR)
        assert all(link.span_id in known and link.trace_id == root.trace_id for link in span.links)
        assert all(event.name and event.time_unix_nano for event in span.events)
        keys = [attribute.key for attribute in span.attributes]
        assert len(set(keys)) == len(keys), "an attribute is there twice"
    attributes = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
    assert attributes["service.name"]
    return len(spans), [(attributes["handoff.ref"], attributes["handoff.seal"])]


# The children, required and further attributes of each element, by the schema junit-10.xsd of Jenkins' plugin xunit.
RERUN = (set(), {"type"}, {"message"})
RESULT = (set(), set(), {"type", "message"})
COUNTS = {"tests", "failures", "errors"}
JUNIT = {
    "testsuites": ({"testsuite"}, set(), COUNTS | {"name", "time"}),
    "testsuite": ({"properties", "testcase"}, COUNTS | {"name"}, {"time", "skipped", "timestamp"}),
    "properties": ({"property"}, set(), set()),
    "property": (set(), {"name", "value"}, set()),
    "testcase": (
        {"skipped", "error", "failure", "rerunFailure", "flakyFailure", "system-out"},
        {"name"},
        {"time", "classname"},
    ),
    "failure": RESULT,
    "error": RESULT,
    "skipped": RESULT,
    "rerunFailure": RERUN,
    "flakyFailure": RERUN,
    "system-out": (set(), set(), set()),
}


def check_element(element):
    children, required, further = JUNIT[element.tag]
    attributes = set(element.attrib)
    assert required <= attributes <= required | further, f"{element.tag} has the attributes {attributes}"
    assert re.fullmatch(r"[0-9]*(\.[0-9]*)?", element.get("time", "0")), "a time is no number of seconds"
    for child in element:
        assert child.tag in children, f"{element.tag} has a {child.tag}"
        check_element(child)


def check_junit(text):
    """Reads with junitparser, and holds the elements to the schema."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    check_element(root)
    (suite,) = xunit2.JUnitXml.fromstring(text.encode())
    cases = list(suite)
    kinds = [type(result).__name__ for case in cases for result in case.result]
    assert (suite.tests, suite.failures) == (len(cases), kinds.count("Failure")), "the counts are wrong"
    assert (suite.errors, suite.skipped) == (kinds.count("Error"), kinds.count("Skipped")), "the counts are wrong"
    assert all(root.get(name) == root[0].get(name) for name in COUNTS), "the counts are wrong"
    for case in cases:
        assert case.name and len(case.result) <= 1
        assert not (case.is_flaky and case.result) and not (case.is_rerun and not case.result)
    properties = {one.name: one.value for one in suite.properties()}
    return len(cases), [(properties["handoff.ref"], properties["handoff.seal"])]


def references(value):
    """All references to a component or task."""
    if isinstance(value, list):
        return [found for one in value for found in references(one)]
    if not isinstance(value, dict):
        return []
    own = [value["ref"]] if "ref" in value else []
    return own + value.get("dependsOn", []) + references(list(value.values()))


def names(value):
    """All names that can be referred to."""
    if isinstance(value, list):
        return [found for one in value for found in names(one)]
    if not isinstance(value, dict):
        return []
    return ([value["bom-ref"]] if "bom-ref" in value else []) + names(list(value.values()))


def check_cyclonedx(text):
    """Validates against the schema of CycloneDX 1.6, and holds that every reference has its target."""
    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert found is None, found
    bom = json.loads(text)
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    known = names(bom)
    assert len(set(known)) == len(known), "two parts have one name"
    missing = set(references(bom)) - set(known)
    assert not missing, f"nothing is called {missing}"
    properties = {one["name"]: one["value"] for one in bom["metadata"]["component"]["properties"]}
    return len(known), [(properties["git-handoff:ref"], properties["git-handoff:seal"])]


def change(path, value):
    """A change of JSON: sets, or removes if the value is None, what is at a path."""

    def changed(text):
        lines = text.splitlines()
        whole = json.loads(lines[0])
        held = whole
        for step in path[:-1]:
            held = held[step]
        if value is None:
            del held[path[-1]]
        else:
            held[path[-1]] = copy.deepcopy(value)
        return "\n".join([json.dumps(whole), *lines[1:]])

    return changed


def replace(old, new):
    """A change of text, which must be possible."""

    def changed(text):
        assert re.search(old, text), f"there is no {old!r} to change"
        return re.sub(old, new, text, count=1)

    return changed


SPAN = ("resourceSpans", 0, "scopeSpans", 0, "spans", 1)
RANGE = ("files", 0, "conversations", 0, "ranges", 0)
TASK = ("formulation", 0, "workflows", 0, "tasks", 0)
CHECKS = {
    "agent-trace": (
        check_agent_trace,
        [
            change(["version"], "1.0"),
            change(["id"], "1"),
            change(["timestamp"], "today"),
            change(["files"], None),
            change([*RANGE, "start_line"], 0),
            change([*RANGE, "end_line"], "5"),
            change(["more"], 1),
            change(["files", 0, "conversations", 0, "contributor", "type"], "robot"),
            change(["metadata"], {}),
        ],
    ),
    "git-ai": (
        check_git_ai,
        [
            replace("\n---\n", "\n"),
            replace("authorship/3.0.0", "authorship/2.0.0"),
            replace("::t_", "::x_"),
            replace("\n  s_", "\n s_"),
            replace(r"(?m)^(  s_\S+) .*$", r"\1 9,5"),
            replace(r"(?m)^(  s_\S+) .*$", r"\1 0-2"),
            replace('"prompts": {},', ""),
            replace('"agent_id"', '"agent"'),
            replace("(?s)^.*?\n", ""),
            replace('"(s_[0-9a-f]{14})"', '"s_00000000000000"'),
        ],
    ),
    "otel": (
        check_otel,
        [
            change([*SPAN, "more"], 1),
            change([*SPAN, "traceId"], "00" * 16),
            change([*SPAN, "spanId"], "aa"),
            change([*SPAN, "parentSpanId"], "ab" * 8),
            change([*SPAN, "startTimeUnixNano"], "9" * 19),
            change([*SPAN, "kind"], "internal"),
            change([*SPAN, "attributes", 0, "value"], {"text": "a"}),
            change(["resourceSpans", 0, "resource"], {}),
        ],
    ),
    "junit": (
        check_junit,
        [
            replace("<testcase", "<testcases"),
            replace("</testsuites>", ""),
            replace('tests="', 'tests="9'),
            replace(' name="', ' nom="'),
            replace(' time="', ' time="x'),
            replace('<flakyFailure type="', '<flakyFailure kind="'),
            replace("<skipped ", "<error/><skipped "),
            replace("<system-out>", "<system-out>\x1b"),
            replace("handoff.seal", "x"),
        ],
    ),
    "cyclonedx": (
        check_cyclonedx,
        [
            change(["specVersion"], "1.5"),
            change(["serialNumber"], "urn:uuid:1"),
            change(["more"], 1),
            change([*TASK, "taskTypes"], ["think"]),
            change([*TASK, "timeStart"], "today"),
            change([*TASK, "outputs", 0, "resource", "ref"], "nothing"),
            change(["components", 0, "type"], "model"),
            change(["components", 1, "hashes", 0, "content"], "00"),
            change(["metadata", "component", "properties"], []),
        ],
    ),
}


def main():
    folder, reference, seal = sys.argv[1:]
    told = []
    for name, (check, breaks) in CHECKS.items():
        text = pathlib.Path(folder, name).read_text()
        count, evidence = check(text)
        assert count and evidence and set(evidence) == {(reference, seal)}, f"{name} names other evidence: {evidence}"
        for at, broken in enumerate(breaks):
            sample = broken(text)
            assert sample != text, f"{name}: broken sample {at} is not broken"
            try:
                check(sample)
            except Exception:
                continue
            raise AssertionError(f"{name}: broken sample {at} was accepted")
        told.append(f"{name} {count}")
    samples = sum(len(breaks) for _, breaks in CHECKS.values())
    print(f"checked {', '.join(told)}; {samples} broken samples failed")


main()
