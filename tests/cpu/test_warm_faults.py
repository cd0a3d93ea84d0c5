"""Warm under fault: nothing is lost, nothing is half-written, and each run says what it did."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from forks import checked, in_fork, warm_here, warmed
from surroundings import unprivileged
from test_warm import launches, run

from jitaudit.errors import SetupError
from jitaudit.jit import publishing
from jitaudit.jit.lookup import Whole, look_up
from jitaudit.jit.marker import entry_name, read_markers
from jitaudit.jit.staging import clear_leftovers, staging_in
from jitaudit.manifest import encode
from jitaudit.model import Manifest
from jitaudit.probing import Probe
from jitaudit.sweeping import Narrowing
from jitaudit.warming import Warming


@pytest.fixture(scope="module")
def wanted(probe_here: Callable[..., Probe]) -> Manifest:
    """One kernel, six variants."""
    return Narrowing(kernels=("copy_kernel",)).of(probe_here("warm_kernels").manifest)


@pytest.fixture(scope="module")
def single(wanted: Manifest) -> Manifest:
    """One variant."""
    (kernel,) = wanted.kernels
    return msgspec.structs.replace(wanted, kernels=(msgspec.structs.replace(kernel, variants=kernel.variants[:1]),))


def assert_whole(manifest: Manifest, directory: Path) -> None:
    """Every variant is a hit, for check and for Triton, and nothing of a writer is left."""
    found = checked(manifest, directory)
    assert (found.misses, found.missed) == ((), 0)
    assert leftovers(directory) == []


def leftovers(directory: Path) -> list[Path]:
    """What no reader would ever look at."""
    staging = directory / "jitaudit" / "staging"
    return [*staging.glob("*"), *directory.glob("*/tmp.pid_*")]


# --- many writers ---------------------------------------------------------------------------------------------------


@pytest.mark.matrix
def test_eight_warmers_on_one_directory(wanted: Manifest, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: warmed(wanted, tmp_path, jobs=1), range(8)))
    assert all(one.complete and one.compiled + one.present == 6 for one in done)
    assert_whole(wanted, tmp_path)
    assert launches(wanted, tmp_path) == (0, 6)


WRITERS, KEYS = 4, 8


@pytest.mark.parametrize("rounds", [60, pytest.param(1000, marks=pytest.mark.nightly)])
def test_groups_never_mix_their_writers_files(rounds: int) -> None:
    """Writers of the same keys publish at one moment, round after round; readers look all the while."""
    directory = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp", f"jitaudit-test-{os.getpid()}")
    shared = mmap.mmap(-1, mmap.PAGESIZE)
    try:
        with forked([partial(publish, writer, rounds, directory, shared) for writer in range(WRITERS)]) as done:
            seen = 0
            while not done():
                seen += len([writers_of(directory, key) for key in range(KEYS)])
        assert seen
        assert all(len(writers_of(directory, key)) == 1 for key in range(KEYS))
        assert not list((directory / "staging").iterdir())
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def publish(writer: int, rounds: int, directory: Path, shared: mmap.mmap) -> None:
    """One writer: in each round, when all are there, it publishes an entry under every key."""
    from triton import knobs

    knobs.cache.dir = str(directory)
    manager = publishing.publishing_to(directory / "staging")
    for number in range(rounds):
        meet(shared, writer, number)
        for key in range(KEYS):
            entry = manager(f"KEY{key}")
            names = ("kernel.ttir", "kernel.cubin", "kernel.json")
            group = {name: entry.put(f"{name} of writer {writer} in round {number}", name) for name in names}
            entry.put_group("kernel.json", group)


def meet(shared: mmap.mmap, writer: int, number: int) -> None:
    """A barrier of processes: each counts its own rounds, and waits until all have come as far."""
    shared[writer * 4 : writer * 4 + 4] = (number + 1).to_bytes(4, "little")
    while any(int.from_bytes(shared[w * 4 : w * 4 + 4], "little") <= number for w in range(WRITERS)):
        os.sched_yield()


def writers_of(directory: Path, key: int) -> set[str]:
    """Who wrote the files of an entry, as a reader of Triton's finds them: one and the same."""
    from triton import knobs
    from triton.runtime.cache import FileCacheManager

    with knobs.cache.scope():
        knobs.cache.dir = str(directory)
        group = FileCacheManager(f"KEY{key}").get_group("kernel.json")
    if group is None:
        return set()
    contents = {Path(path).read_text() for path in group.values()}
    writers = {content.partition(" of ")[2] for content in contents}
    assert (len(contents), len(writers)) == (3, 1), contents
    return writers


@contextmanager
def forked(works: list[Callable[[], None]]) -> Iterator[Callable[[], bool]]:
    """Run each work in a fork; gives whether all are done. Fails if one failed."""
    pids = []
    for work in works:
        pid = os.fork()
        if pid == 0:
            code = 1
            with suppress(Exception):
                work()
                code = 0
            os._exit(code)
        pids.append(pid)
    codes: dict[int, int] = {}

    def done() -> bool:
        for pid in [pid for pid in pids if pid not in codes]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                codes[pid] = os.waitstatus_to_exitcode(status)
        return len(codes) == len(pids)

    yield done
    while not done():
        os.sched_yield()
    assert set(codes.values()) == {0}


# --- killed at every step -------------------------------------------------------------------------------------------

STEPS = ("open", "mkdir", "replace", "rename", "fsync", "unlink", "rmdir")


def warm_and_die(manifest: Manifest, directory: Path, at: int) -> int:
    """Warm; at file-system step number `at` SIGKILL the whole run. How many steps it took, or the number itself."""
    with mmap.mmap(-1, mmap.PAGESIZE) as shared:

        def work() -> Warming:
            server = os.getpid()
            for name in STEPS:
                setattr(os, name, counted(getattr(os, name), shared, at, server))
            return warm_here(manifest, directory, jobs=1)

        alive, held = os.pipe()  # every process of the run holds an end: the locks of the killed are free at its end
        with suppress(ChildProcessError):
            in_fork(work, Warming)
        os.close(held)
        assert os.read(alive, 1) == b""
        os.close(alive)
        return int.from_bytes(shared[:4], "little")


def counted(call: Callable[..., Any], shared: mmap.mmap, at: int, server: int) -> Callable[..., Any]:
    def step(*args: Any, **kwargs: Any) -> Any:
        if call.__name__ != "open" or (len(args) > 1 and args[1] & os.O_CREAT):
            number = int.from_bytes(shared[:4], "little") + 1
            shared[:4] = number.to_bytes(4, "little")
            if number == at:
                os.kill(server, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)

    return step


def test_killed_at_a_step_then_resumed(single: Manifest, tmp_path: Path) -> None:
    """A sample of the steps; `test_killed_at_every_step_then_resumed` takes all."""
    steps = warm_and_die(single, tmp_path / "whole", at=-1)
    assert steps > 30
    for at in range(2, steps, steps // 6):
        kill_and_resume(single, tmp_path / str(at), at)


@pytest.mark.nightly
def test_killed_at_every_step_then_resumed(single: Manifest, tmp_path: Path) -> None:
    for at in range(1, warm_and_die(single, tmp_path / "whole", at=-1) + 1):
        kill_and_resume(single, tmp_path / str(at), at)


def kill_and_resume(manifest: Manifest, directory: Path, at: int) -> None:
    assert warm_and_die(manifest, directory, at) >= at  # threads may take a step more before it is dead
    between = checked(manifest, directory)
    assert {miss.code for miss in between.misses} <= {"JA208", "JA210"}  # missing or unfinished, never wrong
    resumed = warmed(manifest, directory)
    assert resumed.complete
    assert resumed.compiled + resumed.present == 1
    if left := [note for note in resumed.notes if "killed" in note]:
        assert left == ["cleared what killed runs left behind (1)"]
    assert_whole(manifest, directory) if resumed.compiled else clear_leftovers(directory)
    assert leftovers(directory) == []


def test_a_lock_whose_holder_died_does_not_block(tmp_path: Path) -> None:
    def work() -> None:
        with staging_in(tmp_path) as staging:
            (staging / "half").write_bytes(b"x")
            os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if pid == 0:
        work()
    os.waitpid(pid, 0)
    assert len(leftovers(tmp_path)) == 2
    with staging_in(tmp_path) as living:
        assert clear_leftovers(tmp_path) == 1
        assert living.is_dir()
    assert leftovers(tmp_path) == []


def test_a_compiler_that_dies_loses_one_variant(wanted: Manifest, tmp_path: Path) -> None:
    def work() -> Warming:
        real = publishing.compile_into_cache

        def dying(rebuilt: Any, *args: Any) -> dict[str, str]:
            if rebuilt.source.attrs == {}:
                os.kill(os.getpid(), signal.SIGSEGV)
            return real(rebuilt, *args)

        from jitaudit.warming import compiling

        compiling.compile_into_cache = dying
        return warm_here(wanted, tmp_path, jobs=2)

    done = in_fork(work, Warming, TRITON_CACHE_DIR=str(tmp_path))
    assert done.compiled + len(done.failed) == 6
    assert done.compiled
    assert {failed.reason for failed in done.failed} <= {"the compiler died of signal SIGSEGV"}


# --- a directory that fails -----------------------------------------------------------------------------------------


@contextmanager
def mounted(where: Path, options: str) -> Iterator[Path]:
    """A file system of its own at `where`."""
    where.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", where], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this user can't mount a tmpfs here: {done.stderr.strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", where], check=True)


def test_a_full_disk(wanted: Manifest, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=160k") as small:
        done = warmed(wanted, small, jobs=1)
        assert "No space left on device" in (done.stopped or "")
        assert (done.complete, bool(done.left)) == (True, True)
        assert done.compiled + len(done.left) == 6
        found = checked(wanted, small)
        assert found.hits == done.compiled
        assert {miss.code for miss in found.misses} <= {"JA210"}
        assert [path for path in small.rglob("*") if path.is_file() and path.stat().st_size == 0] == []
        assert leftovers(small) == []


def test_a_full_disk_ends_the_command_with_3(wanted: Manifest, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_bytes(encode(wanted))
    with mounted(tmp_path / "small", "size=60k") as small:
        told = run("warm", tmp_path / "m.json", "--cache-dir", small, code=3)
    assert f"jitaudit: {small} (--cache-dir): OSError: No space left on device" in told
    assert "Traceback" not in told


def test_a_read_only_directory(wanted: Manifest, tmp_path: Path) -> None:
    with mounted(tmp_path / "fixed", "size=4m") as fixed:
        subprocess.run(["mount", "-o", "remount,ro", fixed], check=True)
        with pytest.raises(SetupError, match=rf"{fixed} \(from test\) can't be used: Read-only file system"):
            warmed(wanted, fixed)
        assert {miss.code for miss in checked(wanted, fixed).misses} == {"JA210"}
        subprocess.run(["mount", "-o", "remount,rw", fixed], check=True)
        warmed(wanted, fixed)
        subprocess.run(["mount", "-o", "remount,ro", fixed], check=True)
        assert warmed(wanted, fixed).nothing_to_do
        assert checked(wanted, fixed).hits == 6


@pytest.mark.parametrize(
    ("below", "reason"),
    [
        (".", "--cache-dir {place} is no directory"),
        ("cache", "cache directory {place} (from --cache-dir) can't be used: Not a directory"),
    ],
)
def test_a_file_where_the_directory_should_be(below: str, reason: str, wanted: Manifest, tmp_path: Path) -> None:
    """Nothing is damaged there: the directory can't be one."""
    (tmp_path / "file").write_text("kept")
    (tmp_path / "m.json").write_bytes(encode(wanted))
    place = tmp_path / "file" / below
    told = run("warm", tmp_path / "m.json", "--cache-dir", place, code=3)
    assert reason.format(place=place) in told
    assert {miss.code for miss in checked(wanted, place).misses} == {"JA210"}
    assert (tmp_path / "file").read_text() == "kept"


def test_a_directory_of_another_user(wanted: Manifest, tmp_path: Path) -> None:
    """A container under a random uid with HOME=/: what is there works, what is missing is said, nothing is written."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(0o755)
    cache = tmp_path / "cache"
    warmed(wanted, cache)

    def as_stranger(directory: Path) -> Callable[[], Warming]:
        def work() -> Warming:
            warm_here(wanted, cache)  # imports what it needs while it may
            with unprivileged():
                return warm_here(wanted, directory)

        return work

    environ = {"TRITON_CACHE_DIR": str(cache), "HOME": "/"}
    assert in_fork(as_stranger(cache), Warming, **environ).nothing_to_do
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o555)
    with pytest.raises(SetupError, match=rf"{empty} \(from test\) can't be used: Permission denied; set"):
        in_fork(as_stranger(empty), Warming, **environ)
    assert list(empty.iterdir()) == []


def test_a_directory_that_vanishes_is_filled_again(wanted: Manifest, tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    def work() -> Warming:
        real = os.replace

        def replace(source: Any, target: Any) -> None:
            real(source, target)
            with suppress(FileExistsError):
                if "__grp__" in str(target):
                    os.mkdir(tmp_path / "once")
                    shutil.rmtree(cache)

        os.replace = replace
        return warm_here(wanted, cache, jobs=1)

    done = in_fork(work, Warming, TRITON_CACHE_DIR=str(cache))
    assert (done.compiled, done.complete) == (6, True)
    assert_whole(wanted, cache)


@pytest.mark.matrix
@pytest.mark.parametrize("code", [errno.EBUSY, errno.ENOENT])
@pytest.mark.parametrize("call", ["replace", "removedirs"])
@pytest.mark.parametrize("manager", [None, "triton.runtime.cache:FileCacheManager"])
def test_a_file_system_that_fails_once_is_tried_again(
    call: str, code: int, manager: str | None, single: Manifest, tmp_path: Path
) -> None:
    """In jitaudit's own writer, and in Triton's, whose tidying up fails on shared file systems."""

    def work(times: int) -> Callable[[], Warming]:
        def warm() -> Warming:
            real, left = getattr(os, call), [times]

            def failing(*args: Any) -> Any:
                if str(tmp_path) in str(args[0]) and left[0]:
                    left[0] -= 1
                    raise OSError(code, os.strerror(code), args[0])
                return real(*args)

            setattr(os, call, failing)
            return warm_here(single, tmp_path, jobs=1)

        return warm

    environ = {"TRITON_CACHE_DIR": str(tmp_path)} | ({"TRITON_CACHE_MANAGER": manager} if manager else {})
    done = in_fork(work(1), Warming, **environ)
    assert (done.compiled, done.complete) == (1, True)
    assert checked(single, tmp_path).hits == 1
    if manager is None and call == "replace":
        shutil.rmtree(tmp_path)
        failed = in_fork(work(99), Warming, **environ)
        assert os.strerror(code) in failed.failed[0].reason
        assert checked(single, tmp_path).hits == 0


# --- a compiler that fails ------------------------------------------------------------------------------------------


@pytest.mark.matrix
def test_an_assembler_that_fails_is_quoted(single: Manifest, tmp_path: Path) -> None:
    ptxas = tmp_path / "ptxas"
    ptxas.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'release 12.8, V12.8.93' && exit\n"
        "echo 'ptxas fatal: no' >&2\nexit 255\n"
    )
    ptxas.chmod(0o755)
    variables = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")  # 3.9 takes the latter for cuda:90 too
    done = warmed(single, tmp_path / "cache", dict.fromkeys(variables, str(ptxas)))
    (failed,) = done.failed
    assert failed.reason.startswith("PTXASError: ")
    assert "ptxas fatal: no" in failed.reason
    assert "\n" not in failed.reason
    assert {path.parent.name for path in (tmp_path / "cache").rglob("*") if path.is_file()} == {"jitaudit"}


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["cubin", "json", "ttir", "__grp__"])
@pytest.mark.parametrize("size", [0, 20])
def test_repair_sets_damage_aside_and_restores_it(kind: str, size: int, single: Manifest, tmp_path: Path) -> None:
    warmed(single, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    pattern = "*/__grp__*" if kind == "__grp__" else f"*/[!_]*.{kind}"
    harmed = sorted(path for path in tmp_path.glob(pattern) if path.parent.name != "jitaudit")[0]
    harmed.write_bytes(before[harmed][:size])
    told = warmed(single, tmp_path)
    (damage,) = told.damaged
    assert (told.compiled, told.complete, damage.restored) == (0, False, False)
    assert harmed.name in damage.file
    repaired = warmed(single, tmp_path, repair=True)
    (damage,) = repaired.damaged
    assert (repaired.compiled, repaired.complete, damage.restored, damage.identical) == (1, True, True, True)
    assert Path(damage.aside or "", harmed.name).read_bytes() == before[harmed][:size]
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "aside" not in path.parts}
    assert after == before
    assert_whole(single, tmp_path)


@pytest.fixture
def small_entry(single: Manifest, tmp_path: Path) -> tuple[Path, str, dict[str, str]]:
    """A real entry of four files: its directory, its hash, and what the marker lists of it."""
    warmed(single, tmp_path, {"TRITON_STORE_BINARY_ONLY": "1"})
    (variant,) = next(iter(read_markers(tmp_path).readable.values())).variants
    assert len(variant.files) == 4
    return tmp_path, variant.hash, variant.files


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.nightly)])
def test_no_flipped_byte_and_no_cut_is_ever_a_hit(
    step: int, marked: bool, small_entry: tuple[Path, str, dict[str, str]]
) -> None:
    """Without a marker the group file is not hashed: there, what is still a hit must be the same files."""
    directory, digest, files = small_entry
    listed = files if marked else {}
    whole = look_up(directory, digest, "copy_kernel", listed)
    assert isinstance(whole, Whole)
    tried = 0
    for name in files:
        path = directory / name
        content = path.read_bytes()
        others = {other: sha for other, sha in files.items() if other != name}
        for harmed in (*flips(content, step), *cuts(content, step)):
            path.write_bytes(harmed)
            found = look_up(directory, digest, "copy_kernel", listed)
            tried += 1
            if isinstance(found, Whole):
                assert not marked
                assert path.name.startswith("__grp__")
                assert others.items() <= found.files.items()
        path.write_bytes(content)
    assert tried >= 2 * sum((directory / name).stat().st_size for name in files) // step
    assert look_up(directory, digest, "copy_kernel", listed) == whole
    assert (directory / entry_name(digest)).is_dir()


def flips(content: bytes, step: int) -> Iterator[bytes]:
    for at in range(0, len(content), step):
        yield content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :]


def cuts(content: bytes, step: int) -> Iterator[bytes]:
    for length in range(0, len(content), step):
        yield content[:length]


def test_a_directory_in_a_files_place_is_set_aside(single: Manifest, tmp_path: Path) -> None:
    assert warmed(single, tmp_path).complete
    (binary,) = tmp_path.glob("*/*.cubin")
    binary.unlink()
    binary.mkdir()
    (miss,) = checked(single, tmp_path).misses
    assert (miss.code, "it is a directory" in miss.message) == ("JA209", True)
    assert not warmed(single, tmp_path).complete
    assert warmed(single, tmp_path, repair=True).complete
    assert_whole(single, tmp_path)
