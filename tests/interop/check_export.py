"""Checks exported evidence with other people's libraries, and with the algorithm of the bundle's own system.

usage: check_export.py <allowed-signers line> <in-toto.jsonl> <bundle.json>

Needs in-toto-attestation, securesystemslib and cryptography from PyPI. Nothing here knows git-handoff: the statements are read by
in-toto's own classes, the envelopes are verified by securesystemslib, and the bundle is recomputed from its description.
"""

import base64
import hashlib
import json
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from google.protobuf.json_format import ParseDict
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey


def public_key(line):
    """The key of an allowed-signers line."""
    words = line.split()
    at = words.index("ssh-ed25519")
    key = load_ssh_public_key(" ".join(words[at:at + 2]).encode())
    assert isinstance(key, Ed25519PublicKey)
    return key


def check_in_toto(key, lines):
    """Verifies each envelope and validates each statement; returns how many there were."""
    count = 0
    for line in lines:
        raw = json.loads(line)
        keyid = raw["signatures"][0]["keyid"]
        envelope = Envelope.from_dict(raw)
        known = SSlibKey.from_crypto(key, keyid=keyid)
        assert envelope.verify([known], 1), "no valid signature"
        forged = Envelope(envelope.payload + b" ", envelope.payload_type, envelope.signatures)
        try:
            forged.verify([known], 1)
        except Exception:
            pass
        else:
            raise AssertionError("a changed payload was accepted")
        message = ParseDict(json.loads(envelope.payload), statement_pb2.Statement())
        statement = Statement.copy_from_pb(message)
        statement.validate()
        assert message.predicate_type == "https://slsa.dev/provenance/v1"
        count += 1
    return count


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def entry_bytes(entry):
    fields = ["kind", "runId", "itemId", "status", "actor", "manifestRef", "resultRef", "at", "seq"]
    array = [entry.get(field) for field in fields]
    if "outputRefs" in entry:
        array.append(canonical(entry["outputRefs"]).decode())
    return json.dumps(array, separators=(",", ":"), ensure_ascii=False).encode()


def merkle(leaves):
    if not leaves:
        return bytes(32)
    level = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves]
    while len(level) > 1:
        pairs = [level[at:at + 2] for at in range(0, len(level), 2)]
        level = [hashlib.sha256(b"\x01" + b"".join(pair)).digest() if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


def pinned(ref):
    """The content hash of a reference, as that system takes one apart; a reference of another form binds nothing there."""
    assert ref.startswith("pangolin://"), ref
    parts = ref.removeprefix("pangolin://").split("/")
    assert len(parts) == 4 and all(parts) and parts[1] != "dispatches", ref
    return parts[3]


def check_bundle(key, bundle):
    """Recomputes chain, root, signature, manifests and handoffs as the bundle's own system does."""
    previous = ""
    hashes = []
    for seq, entry in enumerate(bundle["auditLog"]["entries"]):
        assert entry["seq"] == seq and entry["runId"] == bundle["runId"]
        assert entry["prevHash"] == previous
        previous = hashlib.sha256(entry_bytes(entry) + previous.encode()).hexdigest()
        assert entry["entryHash"] == previous, f"entry {seq}"
        hashes.append(bytes.fromhex(previous))
    root = bundle["auditLog"]["root"]
    assert base64.b64decode(root["root"]) == merkle(hashes), "root"
    key.verify(base64.b64decode(root["signature"]["bytes"]), merkle(hashes))
    known = set()
    for manifest in bundle["manifests"]:
        body = {k: v for k, v in manifest.items() if k not in ("manifestHash", "signature")}
        assert manifest["manifestHash"] == "sha256:" + hashlib.sha256(canonical(body)).hexdigest(), "manifest"
        known.add(manifest["manifestHash"])
    produced = set()
    for entry in bundle["auditLog"]["entries"]:
        if entry["kind"] == "item.fired":
            assert pinned(entry["manifestRef"]) in known
        if entry["kind"] == "item.reconciled" and entry["status"] == "done":
            produced.update(entry.get("outputRefs", {}).values())
            produced.add(entry.get("resultRef"))
    for manifest in bundle["manifests"]:
        for ref in manifest.get("inputRefs", {}).values():
            assert pinned(ref) and ref in produced, f"{ref} is nobody's product"
    return len(hashes)


def main():
    line, in_toto, bundle = sys.argv[1:]
    key = public_key(open(line).read())
    attestations = check_in_toto(key, open(in_toto))
    entries = check_bundle(key, json.load(open(bundle)))
    print(f"{attestations} attestations and a bundle of {entries} entries verified")


main()
