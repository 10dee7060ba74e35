"""Names of threads: LangGraph ids are arbitrary strings, names of threads have rules.

The mapping is injective. An id of ASCII letters, digits, `_`, `.` and `-` is its own name. Other
bytes become `%XX`. An id whose name would be too long is named by its SHA-256; `%sh` cannot occur
in an encoded name, so the two forms never meet.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import unquote_to_bytes

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_HASHED = "%sha256-"
_NAME_BYTES = 128
_ENCODED_BYTES = 200
THREADS = "refs/handoff/threads/"


def thread_name(thread_id: str) -> str:
    """Returns the name of the thread of `git handoff` that stores this LangGraph thread."""
    raw = thread_id.encode("utf-8", "surrogatepass")
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)
    if name.startswith("-"):
        name = "%2D" + name[1:]
    if name and len(name) <= _NAME_BYTES and len(_encode(name)) <= _ENCODED_BYTES:
        return name
    return _HASHED + hashlib.sha256(raw).hexdigest()


def thread_id_of(name: str) -> str | None:
    """Returns the LangGraph id with this name, or `None` if the name does not determine one."""
    if name.startswith(_HASHED):
        return None
    try:
        thread_id = unquote_to_bytes(name).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return thread_id if thread_name(thread_id) == name else None


def thread_ref(name: str) -> str:
    """Returns the ref of a thread of this repository."""
    return THREADS + _encode(name)


def name_of_ref(ref: str) -> str | None:
    """Returns the name of the thread at a ref, or `None` if the ref is none of a thread."""
    if not ref.startswith(THREADS):
        return None
    try:
        name = unquote_to_bytes(ref[len(THREADS) :]).decode()
    except UnicodeDecodeError:
        return None
    return name if thread_ref(name) == ref else None


def _encode(name: str) -> str:
    """Encodes a segment of a ref as docs/reference/format.md says, section 1."""
    raw = name.encode()
    encoded: list[str] = []
    for at, byte in enumerate(raw):
        is_dot = byte == ord(".")
        is_bare = byte in _PLAIN and not (is_dot and _is_special_dot(raw, at, encoded))
        encoded.append(chr(byte) if is_bare else f"%{byte:02X}")
    return "".join(encoded)


def _is_special_dot(raw: bytes, at: int, encoded: list[str]) -> bool:
    if at in (0, len(raw) - 1) or encoded[-1] == ".":
        return True
    return re.fullmatch(rb"lock", raw[at + 1 :], re.IGNORECASE) is not None
