"""Manifests that several tests read, made once a process."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from jitaudit.probing import Probe, probe
from jitaudit.sweeping import Narrowing

HERE = Path(__file__).parent

# How long an example takes says something of the machine alone.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing")


@pytest.fixture(scope="session")
def probe_here() -> Callable[..., Probe]:
    """``probe(target, architecture, **axes)`` from this folder, in a child process; equal calls share one result."""

    @cache
    def run(target: str, architecture: str = "cuda:90", **axes: str) -> Probe:
        before = Path.cwd()
        os.chdir(HERE)
        try:
            return probe([target], architecture, Narrowing(axes=axes), lambda sweep, done, cases: None)
        finally:
            os.chdir(before)

    return run


@pytest.fixture(scope="session")
def field_cases(probe_here: Callable[..., Probe]) -> Probe:
    """The whole package of field cases, on cuda:90."""
    return probe_here("cases")
