"""Runs the Python blocks of a page word for word, and compares what they print.

    blocks.py PAGE

All blocks run in one namespace in the current folder. A block of `text` that follows a Python block
is what it prints.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path


def main(page: Path) -> None:
    """Runs the page; fails at the first block that prints something else."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    namespace: dict[str, object] = {"__name__": "__main__"}
    count = 0
    for at, (kind, text) in enumerate(blocks):
        if kind != "python":
            continue
        count += 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, f"{page}, Python block {count}", "exec"), namespace)  # noqa: S102
        follows = blocks[at + 1 : at + 2]
        expected = follows[0][1] if follows and follows[0][0] == "text" else ""
        if printed.getvalue() != expected:
            sys.exit(f"{page}: block {count} printed {printed.getvalue()!r}, not {expected!r}")
    if count == 0:
        sys.exit(f"{page}: there are no Python blocks")
    print(f"{page.name}: {count} Python blocks ran, and printed what the page shows")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
