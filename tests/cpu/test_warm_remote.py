"""Warm once, a fleet reads: Triton's own remote cache backend, on a real Redis server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forks import checked, warmed
from test_warm import launches

from jitaudit.errors import SetupError
from jitaudit.model import Manifest
from jitaudit.probing import Probe
from jitaudit.sweeping import Narrowing

pytestmark = pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="no redis-server here (.ci/run installs the system's package)"
)


@pytest.fixture(scope="module")
def wanted(probe_here: Callable[..., Probe]) -> Manifest:
    return Narrowing(kernels=("copy_kernel",)).of(probe_here("warm_kernels").manifest)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The variables of a machine that shares a Redis server, which runs meanwhile; this process has them too."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert time.monotonic() < deadline, "redis-server did not come up"
            assert server.poll() is None
            time.sleep(0.05)
        variables = {
            "TRITON_CACHE_MANAGER": "triton.runtime.cache:RemoteCacheManager",
            "TRITON_REMOTE_CACHE_BACKEND": "redis_backend:Backend",
            "TRITON_REDIS_HOST": "127.0.0.1",
            "TRITON_REDIS_PORT": str(port),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield variables
    finally:
        server.terminate()
        server.wait()


def test_another_machine_reads_what_one_warmed(fleet: dict[str, str], wanted: Manifest, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert checked(wanted, second).hits == 0
    done = warmed(wanted, first)
    assert (done.compiled, done.complete) == (6, True)
    assert not list(second.glob("*/*.cubin"))
    assert checked(wanted, second).hits == 6
    assert launches(wanted, tmp_path / "third") == (0, 6)
    again = warmed(wanted, tmp_path / "fourth")
    assert (again.compiled, again.present) == (0, 6)


def test_a_backend_that_fails_is_named(
    fleet: dict[str, str], wanted: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_REDIS_PORT", "1")
    with pytest.raises(
        SetupError, match=r"TRITON_REMOTE_CACHE_BACKEND=redis_backend:Backend\): ConnectionError: .*refused"
    ):
        checked(wanted, tmp_path)
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "no_such_module:Manager")
    with pytest.raises(SetupError, match="TRITON_CACHE_MANAGER=no_such_module:Manager: No module named"):
        warmed(wanted, tmp_path)


def test_without_the_server_the_directory_is_empty(wanted: Manifest, tmp_path: Path) -> None:
    assert "TRITON_CACHE_MANAGER" not in os.environ
    assert launches(wanted, tmp_path / "alone") == (6, 6)
