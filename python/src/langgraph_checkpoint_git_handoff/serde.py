"""A serializer that creates no objects of types that the reader did not allow."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from .errors import HandoffError

_TAGS = frozenset({"null", "bytes", "bytearray", "msgpack"})
_blocked: ContextVar[list[str] | None] = ContextVar("blocked", default=None)


class StrictSerializer(JsonPlusSerializer):
    """`JsonPlusSerializer` for states that other people may have written.

    It never decodes pickles, and calls no constructor but those of LangGraph's safe types and of
    `allowed_types`. A value of another type is refused when it is stored and when it is loaded.
    """

    def __init__(self, allowed_types: Iterable[type | tuple[str, str]] = ()) -> None:
        """Allows these types, or their modules and names, besides the safe ones."""
        super().__init__(allowed_msgpack_modules=tuple(allowed_types) or None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serializes a value, and raises `wrong-type` if it could not be loaded again."""
        typed = super().dumps_typed(obj)
        self.loads_typed(typed)
        return typed

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Loads a value, and raises `wrong-type` if it has a type that is not allowed."""
        if data[0] not in _TAGS:
            raise HandoffError("wrong-type", f"values tagged {data[0]!r} are not decoded")
        blocked: list[str] = []
        token = _blocked.set(blocked)
        try:
            value = super().loads_typed(data)
        finally:
            _blocked.reset(token)
        if blocked:
            names = ", ".join(sorted(set(blocked)))
            raise HandoffError(
                "wrong-type",
                f"the state has values of types that are not allowed: {names}",
                hint="pass allowed_types=[…] with these types to GitHandoffSaver",
            )
        return value


def _note(event: SerdeEvent) -> None:
    blocked = _blocked.get()
    if blocked is not None and event["kind"] in ("msgpack_blocked", "msgpack_method_blocked"):
        blocked.append(f"{event['module']}.{event['name']}")


register_serde_event_listener(_note)
