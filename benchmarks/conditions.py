"""Under what a measurement was made, for the head of each report; and how a report is written."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import msgspec


def conditions(module: str) -> dict[str, str | int]:
    """The command, the versions, the machine and the date."""
    return {
        "command": f"python -m {module} {' '.join(sys.argv[1:])}".strip(),
        "jitaudit": version("jitaudit"),
        "torch": version("torch"),
        "triton": version("triton"),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "gpu": gpu_name(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def write_json(path: Path, report: object) -> None:
    """A report, readable in a diff."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")


def gpu_name() -> str:
    """The GPU that torch sees; `none` where it sees none."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
