"""A LangGraph checkpointer on threads of `git handoff`."""

from .errors import HandoffError
from .names import thread_name
from .saver import Adopted, GitHandoffSaver
from .serde import StrictSerializer

__all__ = ["Adopted", "GitHandoffSaver", "HandoffError", "StrictSerializer", "thread_name"]
