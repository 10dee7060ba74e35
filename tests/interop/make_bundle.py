"""Writes an audit bundle as another orchestrator does, from the description of its format alone.

usage: make_bundle.py > tests/fixtures/foreign-bundle.json

Needs cryptography from PyPI. Nothing here knows git-handoff. The root's bytes are written as that system's own command writes them, an object of
bytes by their index; one entry carries an authorization; one item fails, is retried and done, one is denied, one fails before it is dispatched and has
no entry; its key is the 32 bytes 7, 7, 7, …
"""

import base64
import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

RUN = "nightly/ü"


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def product(item, data):
    return f"pangolin://default/artifact/{item}/sha256:{sha256(data)}"


def manifest(item, fired_at, inputs=None):
    body = {
        "schemaVersion": 1, "runId": RUN, "itemId": item, "parent": f"run:{RUN}", "executor": "dispatch",
        "executorManifest": {"model": "m-1", "temperature": 0.2}, "secretRefs": [], "actor": "human:bo", "firedAt": fired_at,
    }
    if inputs:
        body["inputRefs"] = inputs
    return {**body, "manifestHash": "sha256:" + sha256(canonical(body).encode())}


def at(second):
    return f"2026-06-04T02:00:{second:02}.000Z"


def entries(manifests):
    patch, report = product("edit", b"patch"), product("edit", b"report")
    fired = [f"pangolin://default/manifest/{m['itemId']}/{m['manifestHash']}" for m in manifests]
    told = [
        {"kind": "run.submitted", "actor": "human:bo"},
        {"kind": "item.fired", "itemId": "edit", "manifestRef": fired[0],
         "authorization": {"policy": "default", "allow": True, "by": ["bo", "al"]}},
        {"kind": "item.retried", "itemId": "edit"},
        {"kind": "item.fired", "itemId": "edit", "manifestRef": fired[1]},
        {"kind": "item.reconciled", "itemId": "edit", "status": "done", "resultRef": patch, "outputRefs": {"report.md": report}},
        {"kind": "item.fired", "itemId": "review", "manifestRef": fired[2]},
        {"kind": "item.reconciled", "itemId": "review", "status": "failed"},
        {"kind": "item.skipped", "itemId": "ship"},
        {"kind": "item.denied", "itemId": "deploy", "status": "denied", "actor": "human:bo",
         "authorization": {"verdict": "deny", "principal": "policy", "policyRef": "none", "at": at(8)}},
        {"kind": "item.fired", "itemId": "notes", "manifestRef": fired[3]},
        {"kind": "item.reconciled", "itemId": "notes", "status": "done", "outputRefs": {"notes.md": product("notes", b"notes")}},
        {"kind": "run.completed"},
        {"kind": "run.completed"},
    ]
    previous = ""
    for seq, entry in enumerate(told):
        entry.update(runId=RUN, seq=seq, at=at(seq))
        fields = ["kind", "runId", "itemId", "status", "actor", "manifestRef", "resultRef", "at", "seq"]
        array = [entry.get(field) for field in fields]
        array += [canonical(entry[field]) for field in ("authorization", "outputRefs") if field in entry]
        text = json.dumps(array, separators=(",", ":"), ensure_ascii=False)
        entry["prevHash"] = previous
        entry["entryHash"] = previous = sha256(text.encode() + previous.encode())
        yield entry


def refs(*entries):
    """What the bundle displays of an item, from its entries."""
    shown = ("manifestRef", "resultRef", "outputRefs")
    return {field: entry[field] for entry in entries for field in shown if field in entry}


def merkle(leaves):
    level = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves]
    while len(level) > 1:
        pairs = [level[at:at + 2] for at in range(0, len(level), 2)]
        level = [hashlib.sha256(b"\x01" + b"".join(pair)).digest() if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


def main():
    patch = product("edit", b"patch")
    manifests = [manifest("edit", at(1)), manifest("edit", at(3)), manifest("review", at(5), {"work": patch}), manifest("notes", at(9))]
    log = list(entries(manifests))
    root = merkle([bytes.fromhex(entry["entryHash"]) for entry in log])
    signature = Ed25519PrivateKey.from_private_bytes(bytes([7] * 32)).sign(root)
    print(json.dumps({
        "runId": RUN,
        "manifests": manifests,
        "auditLog": {
            "entries": log,
            "root": {
                "epochId": RUN,
                "root": {str(at): byte for at, byte in enumerate(root)},
                "signature": {"alg": "ed25519", "bytes": base64.b64encode(signature).decode(), "keyRef": "key-1"},
                "receipt": {"anchorId": "s3", "epochId": RUN, "guarantee": "external-immutable", "at": 1780538400000},
            },
        },
        "items": [
            {"id": "edit", "status": "done", "attempts": 2, **refs(log[4], log[3])},
            {"id": "review", "status": "failed", "attempts": 1, **refs(log[5])},
            {"id": "ship", "status": "skipped", "attempts": 0},
            {"id": "deploy", "status": "denied", "attempts": 0, "actor": "human:bo"},
            {"id": "notes", "status": "done", "attempts": 1, **refs(log[10], log[9]), "verify": {"passed": True}},
            {"id": "early", "status": "failed", "attempts": 0},
        ],
        "report": {"intact": True},
    }, ensure_ascii=False, indent=1))


main()
