"""Exports the in-toto statement about one product, for actions/attest to sign.

Reads the product from PRODUCT, as RUN/ITEM:PRODUCT. Writes the predicate into a file, and its name
and the subject as outputs.
"""

import base64
import json
import sys

import runner
from runner import Stop, variable


def export(item):
    """Returns the statements about an item, of its run as it was fetched, or else of a local one."""
    for place in ("origin/", "pull-request/", ""):
        code, out, errors = runner.run("git", "handoff", "--json", "export", "--format=in-toto", "--", place + item)
        if code == 0:
            return [json.loads(base64.b64decode(json.loads(line)["payload"])) for line in out.splitlines()]
        if '"code":"unknown-run"' not in errors:
            break
    raise Stop(f"cannot export {item}: {runner.reason(errors, code)}")


def main():
    """Writes the predicate; returns the exit code."""
    place = runner.folder()
    runner.trust(place)
    product = variable("PRODUCT").strip()
    item, separator, _ = product.partition(":")
    if not separator or "/" not in item:
        raise Stop(f"the input `attest` is not RUN/ITEM:PRODUCT: {product}")
    names = []
    for statement in export(item):
        subject = statement["subject"][0]
        names.append(subject["name"])
        if subject["name"] == product:
            path = place / "predicate.json"
            path.write_text(json.dumps(statement["predicate"]), encoding="utf-8")
            runner.output("subject-name", subject["name"])
            runner.output("subject-digest", f"sha256:{subject['digest']['sha256']}")
            runner.output("predicate-type", statement["predicateType"])
            runner.output("predicate-path", path)
            return 0
    raise Stop(f"there is no product {product}; there is {', '.join(names) or 'none'}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Stop as stop:
        runner.command("error", str(stop))
        sys.exit(1)
