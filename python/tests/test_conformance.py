from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES

from conftest import init
from langgraph_checkpoint_git_handoff import GitHandoffSaver


@pytest.mark.parametrize("capability", sorted(one.value for one in ALL_CAPABILITIES))
def test_conformance(tmp_path: Path, capability: str) -> None:
    """Every capability of the suite is detected, and passes all its tests."""

    @checkpointer_test(name="GitHandoffSaver")
    async def registered() -> AsyncGenerator[GitHandoffSaver, None]:
        yield GitHandoffSaver(init(tmp_path / "repository"))

    suite: Any = registered
    report = asyncio.run(validate(suite, capabilities={capability}))
    result = report.results[capability]
    assert result.failures == []
    assert result.detected
    assert result.tests_passed > 0
    assert result.passed is True
