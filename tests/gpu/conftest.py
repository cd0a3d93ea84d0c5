"""The kernels on a real GPU. Every test here is marked ``gpu`` and says why it was skipped."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = None if torch.cuda.is_available() else pytest.mark.skip(reason="torch sees no GPU here")
    for item in items:
        item.add_marker(pytest.mark.gpu)
        if missing is not None:
            item.add_marker(missing)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was compared: a suite that compares nothing passes too."""
    reports = terminalreporter.getreports("passed")
    buffers = [value for report in reports for name, value in report.user_properties if name == "buffers"]
    terminalreporter.write_line(f"compared with references: {len(buffers)} cases, {sum(buffers)} buffers")
