"""The exception of this package."""

from __future__ import annotations

from collections.abc import Sequence


class HandoffError(Exception):
    """A refused or failed operation, with the stable `code` of `git handoff --json`.

    The program's own codes are in docs/reference/exit-codes.md and docs/reference/cli.md. This
    package adds `no-program`, `no-repository`, `git`, `bad-answer`, `not-langgraph`,
    `no-checkpoint`, `wrong-type`, `missing-thread-id` and `busy`.
    """

    def __init__(
        self, code: str, message: str, *, hint: str | None = None, causes: Sequence[str] = ()
    ) -> None:
        """Stores the code, the message, the command that may help, and the causes."""
        self.code = code
        self.message = message
        self.hint = hint
        self.causes = tuple(causes)
        text = ": ".join([f"{message} [{code}]", *self.causes])
        super().__init__(f"{text}\nhint: {hint}" if hint else text)

    def __reduce__(self) -> tuple[object, ...]:
        """Keeps the fields when the error crosses a process boundary."""
        return (_restore, (self.code, self.message, self.hint, self.causes))


def _restore(code: str, message: str, hint: str | None, causes: Sequence[str]) -> HandoffError:
    return HandoffError(code, message, hint=hint, causes=causes)
