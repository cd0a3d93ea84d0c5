"""The kernels under Triton's interpreter, in a pytest process of their own: ``TRITON_INTERPRET`` acts on import."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was compared: a suite that compares nothing passes too."""
    reports = terminalreporter.getreports("passed")
    buffers = [value for report in reports for name, value in report.user_properties if name == "buffers"]
    terminalreporter.write_line(f"compared with references: {len(buffers)} cases, {sum(buffers)} buffers")
