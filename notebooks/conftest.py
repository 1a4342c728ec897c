"""A failed cell shows what it wrote to standard error.

nbval says only that there was something.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    for output in getattr(item, "test_outputs", None) or []:
        if report.failed and output.get("name") == "stderr":
            report.sections.append(
                ("written to standard error", output["text"])
            )
    return report
