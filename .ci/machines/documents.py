"""Takes scripts and manifests out of the pages of examples, so that what is documented is what is tried."""

import re

from field import HERE, Failed

PAGES = HERE.parents[1] / "examples"


def block(page, name):
    """Returns the code block of a page that follows the comment `<!-- tried: NAME -->`."""
    text = (PAGES / page).read_text()
    found = re.search(rf"<!-- tried: {re.escape(name)} -->\n+```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    if not found:
        raise Failed(f"{page} has no block {name}")
    return found.group(1)
