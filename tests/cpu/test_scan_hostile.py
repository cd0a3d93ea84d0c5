"""Entries that are torn, cut, empty, forged or out to harm: each is skipped by name, and nothing runs or is written."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_entries import Made, elf, ttir, write_entry
from rich.console import Console
from surroundings import unprivileged

from jitaudit.jit import entries
from jitaudit.jit.entries import Broken, Entry, Found, read_cache, read_entry
from jitaudit.jit.ttir import read_signature
from jitaudit.report.scan import text
from jitaudit.scanning import scan

GROUP, METADATA, CODE, TTIR = "__grp__scale_kernel.json", "scale_kernel.json", "scale_kernel.cubin", "scale_kernel.ttir"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One good entry, beside another that must stay readable."""
    write_entry(tmp_path, Made(kernel="other_kernel"))
    return write_entry(tmp_path, Made())


def read(folder: Path) -> Found:
    return read_entry(str(folder), folder.name)


def edit(file: str, change: Callable[[dict], object]) -> Callable[[Path], None]:
    """Rewrite a JSON file with what `change` does to it."""

    def apply(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        change(content)
        (folder / file).write_text(json.dumps(content))

    return apply


def replaced(file: str, data: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / file).write_bytes(data) and None


def removed(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


def linked(file: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / file).rename(folder.parent.parent / file)
        (folder / file).symlink_to(folder.parent.parent / file)

    return apply


def piped(file: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / file).unlink()
        os.mkfifo(folder / file)

    return apply


def claiming(file: str, size: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / file, size)


def crowded(folder: Path) -> None:
    for number in range(100):
        (folder / f"{number}.txt").touch()


DEEP = b'{"child_paths": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}"

HARM: dict[str, tuple[Callable[[Path], None], str]] = {
    "never published": (removed(GROUP), "no group file: it was never published"),
    "no metadata": (removed(METADATA), "scale_kernel.json is missing from its group"),
    "no binary": (removed(CODE), "scale_kernel.cubin is missing from its group"),
    "metadata of another entry": (edit(METADATA, lambda m: m.update(hash="ab" * 32)), "belongs to another entry"),
    "no hash": (edit(METADATA, lambda m: m.pop("hash")), "scale_kernel.json can't be read: .*`hash`"),
    "hash no number": (edit(METADATA, lambda m: m.update(hash="xyz")), "its hash is no hexadecimal number"),
    "no target": (edit(METADATA, lambda m: m.pop("target")), "can't be read: .*`target`"),
    "target of another type": (edit(METADATA, lambda m: m.update(target=[1])), "can't be read: .*target"),
    "unknown backend": (edit(METADATA, lambda m: m["target"].update(backend="xpu")), "its backend xpu is not known"),
    "metadata a list": (replaced(METADATA, b"[]"), "can't be read"),
    "metadata not UTF-8": (replaced(METADATA, b'{"hash": "\xff"}'), "can't be read"),
    "metadata garbage": (replaced(METADATA, bytes(range(256))), "can't be read"),
    "deep JSON": (replaced(GROUP, DEEP), "__grp__scale_kernel.json can't be read"),
    "deep metadata": (replaced(METADATA, DEEP), "scale_kernel.json can't be read"),
    "huge number": (replaced(METADATA, b'{"hash": ' + b"9" * 100_000 + b"}"), "scale_kernel.json can't be read"),
    "group without files": (replaced(GROUP, b"{}"), "can't be read"),
    "group of another kernel": (edit(GROUP, lambda g: g["child_paths"].pop(METADATA)), "missing from its group"),
    "group that climbs out": (
        edit(GROUP, lambda g: g["child_paths"].update({"../../passwd": "/"})),
        "passwd is missing",
    ),
    "two groups": (replaced("__grp__b.json", b"{}"), "more than one group file"),
    "empty group": (replaced(GROUP, b""), f"{GROUP} is empty"),
    "empty metadata": (replaced(METADATA, b""), f"{METADATA} is empty"),
    "empty binary": (replaced(CODE, b""), f"{CODE} is empty"),
    "empty TTIR": (replaced(TTIR, b""), f"{TTIR} is empty"),
    "binary garbage": (replaced(CODE, b"\x00" * 200), f"{CODE} is no binary"),
    "binary of 32 bits": (replaced(CODE, b"\x7fELF\x01\x01" + bytes(200)), f"{CODE} is no binary"),
    "TTIR garbage": (replaced(TTIR, bytes(range(256)) * 9), f"{TTIR} is torn"),
    "TTIR of no function": (replaced(TTIR, b"module {\n}\n"), f"{TTIR} is torn: it holds no public function"),
    "TTIR without an end": (replaced(TTIR, ttir(Made()).replace("\n}", "\n").encode()), "its module does not end"),
    "binary claims 5 GB": (claiming(CODE, 5_000_000_000), f"{CODE} claims 5,000,000,000 bytes, over 268,435,456"),
    "metadata claims 5 GB": (claiming(METADATA, 5_000_000_000), f"{METADATA} claims 5,000,000,000 bytes"),
    "TTIR claims 5 GB": (claiming(TTIR, 5_000_000_000), f"{TTIR} claims 5,000,000,000 bytes"),
    "group claims 5 GB": (claiming(GROUP, 5_000_000_000), f"{GROUP} claims 5,000,000,000 bytes"),
    "metadata a link": (linked(METADATA), f"{METADATA} is a symbolic link, not followed"),
    "binary a link": (linked(CODE), f"{CODE} is a symbolic link, not followed"),
    "group a link": (linked(GROUP), f"{GROUP} is a symbolic link, not followed"),
    "binary a pipe": (piped(CODE), f"{CODE} is no regular file"),
    "metadata a pipe": (piped(METADATA), f"{METADATA} is no regular file"),
    "too many files": (crowded, "more than 64 files"),
}


@pytest.mark.parametrize(("harm", "reason"), HARM.values(), ids=HARM)
def test_an_entry_that_cannot_be_used_is_skipped_and_named(tmp_path: Path, harm, reason: str):
    (tmp_path / "cache").mkdir()
    write_entry(tmp_path / "cache", Made(kernel="other_kernel"))
    folder = write_entry(tmp_path / "cache", Made())
    harm(folder)
    result = scan([tmp_path / "cache"])
    (skipped,) = result.skipped
    assert skipped.path == folder.name
    assert re.search(reason, skipped.reason), skipped.reason
    assert [row.kernel for row in result.rows] == ["server.kernels:other_kernel"]


@pytest.mark.parametrize("file", [GROUP, METADATA, CODE])
def test_a_file_cut_at_any_length_is_never_an_entry(folder: Path, file: str):
    data = (folder / file).read_bytes()
    for length in range(len(data)):
        (folder / file).write_bytes(data[:length])
        assert isinstance(read(folder).content, Broken), length
    (folder / file).write_bytes(data)
    assert isinstance(read(folder).content, Entry)


def test_ttir_cut_at_any_length_within_its_module_is_never_an_entry(folder: Path):
    data = (folder / TTIR).read_bytes()
    for length in range(data.rindex(b"\n}") + 2):
        (folder / TTIR).write_bytes(data[:length])
        assert isinstance(read(folder).content, Broken), length


@pytest.mark.parametrize("file", [GROUP, METADATA, CODE, TTIR])
def test_any_flipped_byte_leaves_an_answer(folder: Path, file: str):
    data = (folder / file).read_bytes()
    whole = read(folder).content
    assert isinstance(whole, Entry)
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 0x55
        (folder / file).write_bytes(flipped)
        content = read(folder).content
        assert isinstance(content, Broken) or content.digest == folder.name
    assert whole.binary.startswith("sha256:")


@given(st.text(alphabet='()<>{},:"\\ %#=loc→!tt.ptr.func public @xi326f\n', max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_argument_list_is_read_or_refused(listed: str):
    try:
        signature = read_signature(ttir(Made()).replace("%x_ptr", f"{listed}%x_ptr", 1))
    except ValueError:
        return
    assert all(name.isprintable() and words.isprintable() for name, words in signature.arguments.items())


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_in_any_file_leave_an_answer(folder: Path, data: bytes):
    kept = {name: (folder / name).read_bytes() for name in (GROUP, METADATA, CODE, TTIR)}
    for name, content in kept.items():
        (folder / name).write_bytes(data)
        assert isinstance(read(folder).content, Broken | Entry)
        (folder / name).write_bytes(content)


def test_hostile_argument_lists_take_no_time():
    for listed in ('"' * 30_000, '"\\' * 15_000, "<" * 60_000, "%a: i32 {" * 5_000, "%a: i32 loc(" * 5_000):
        with pytest.raises(ValueError, match="argument"):
            read_signature(f"module {{\n  tt.func public @k({listed}\n}}\n")


def test_links_to_directories_are_named_and_not_entered(tmp_path: Path):
    write_entry(tmp_path / "cache", Made())
    outside = write_entry(tmp_path / "outside", Made(kernel="outside_kernel"))
    (tmp_path / "cache" / "linked").symlink_to(tmp_path / "outside")
    (tmp_path / "cache" / ("Q" * 52)).symlink_to(outside)
    (tmp_path / "cache" / "loop").symlink_to(tmp_path / "cache")
    result = scan([tmp_path / "cache"])
    assert [row.kernel for row in result.rows] == ["server.kernels:scale_kernel"]
    assert {(item.path, item.reason) for item in result.skipped} == {
        (name, "a symbolic link, not followed") for name in ("linked", "Q" * 52, "loop")
    }


def test_a_scanned_path_may_itself_be_a_link(tmp_path: Path):
    write_entry(tmp_path / "cache", Made())
    (tmp_path / "link").symlink_to(tmp_path / "cache")
    result = scan([tmp_path / "link"])
    assert len(result.rows) == 1
    assert result.notes == (), "the group's paths are the real ones"


def test_directories_too_deep_are_named(tmp_path: Path):
    deep = tmp_path.joinpath(*["d"] * (entries.DEPTH_LIMIT + 2))
    write_entry(deep, Made())
    write_entry(tmp_path, Made())
    (skipped,) = scan([tmp_path]).skipped
    assert "directories deep, not entered" in skipped.reason


def test_entries_and_files_that_may_not_be_read_are_named():
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name) / "cache"
        write_entry(cache, Made())
        closed, shut = (write_entry(cache, Made(salt=salt)) for salt in "ab")
        Path(name).chmod(0o755)
        (closed / CODE).chmod(0)
        shut.chmod(0)
        with unprivileged():
            result = scan([cache])
        shut.chmod(0o755)
    assert result.rows[0].entries == 1
    assert {(item.path, item.reason) for item in result.skipped} == {
        (folder.name, "can't be read: Permission denied") for folder in (closed, shut)
    }


@pytest.mark.parametrize("vanishing", [GROUP, METADATA, CODE, TTIR])
def test_a_file_that_vanishes_while_it_is_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, vanishing: str):
    opened = os.open

    def losing(path, flags, *args, **kwargs):
        if path == vanishing:
            (folder / vanishing).unlink()
        return opened(path, flags, *args, **kwargs)

    monkeypatch.setattr(entries.os, "open", losing)
    assert read(folder).content == Broken("vanished while it was read")


def test_an_entry_that_vanishes_before_it_is_read_is_named(folder: Path):
    reading = read_cache(str(folder.parent))
    next(reading)
    first, *others = sorted(folder.parent.iterdir())
    for file in others[0].iterdir():
        file.unlink()
    others[0].rmdir()
    (vanished,) = reading
    assert (vanished.path, vanished.content) == (others[0].name, Broken("vanished while it was read", known=False))
    assert first.is_dir()


def test_a_file_that_becomes_a_link_while_it_is_read_is_not_followed(folder: Path, monkeypatch: pytest.MonkeyPatch):
    opened = os.open

    def swapping(path, flags, *args, **kwargs):
        if path == CODE:
            (folder / CODE).unlink()
            (folder / CODE).symlink_to("/etc/hostname")
        return opened(path, flags, *args, **kwargs)

    monkeypatch.setattr(entries.os, "open", swapping)
    content = read(folder).content
    assert isinstance(content, Broken)
    assert "not followed" in content.reason


def test_no_source_is_run_no_pipe_waited_for_and_no_device_read(tmp_path: Path):
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef scale_kernel(x_ptr, n): pass\n")
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    for number, file in enumerate((str(trap), str(pipe), "/dev/zero", "relative.py", "/proc/self/mem", str(tmp_path))):
        write_entry(tmp_path / "cache", Made(file=file, line=2, salt=str(number)))
    assert sum(row.entries for row in scan([tmp_path / "cache"]).rows) == 6
    assert not (tmp_path / "ran").exists()


def test_names_move_no_cursor_and_open_no_markup(tmp_path: Path):
    evil = "evil\x1b[2J\x07\u202e[bold red]"
    write_entry(tmp_path, Made(file=f"/srv/{evil}.py", kernel="k[red]"))
    (tmp_path / "bad\x1b[31m\nname").mkdir()
    (tmp_path / "bad\x1b[31m\nname" / "__grp__x.json").write_text("")
    result = scan([tmp_path])
    console = Console(width=300, color_system=None)
    with console.capture() as capture:
        console.print(text(result, verbose=True))
    shown = capture.get()
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert "k[red]" in shown
    assert "SKIPPED bad\\x1b[31m\\nname: " in shown


def test_an_undecodable_name_is_shown_escaped(tmp_path: Path):
    name = os.fsdecode(b"bad\xff")
    (tmp_path / name).mkdir()
    (tmp_path / name / "__grp__x.json").write_text("")
    (skipped,) = scan([tmp_path]).skipped
    assert skipped.path == "bad\\udcff"


def test_programs_whose_tables_lie_first_are_whole_too(folder: Path):
    """hsaco files may have their program table at byte 64: it must lie inside, wherever it stands."""
    data = bytearray(elf(b"code" * 40))
    data[32:40] = (64).to_bytes(8, "little")
    data[54:58] = (56).to_bytes(2, "little") + (1).to_bytes(2, "little")
    (folder / CODE).write_bytes(data)
    assert isinstance(read(folder).content, Entry)


@pytest.mark.parametrize(
    ("file", "limit", "padding"),
    [
        (METADATA, entries.JSON_LIMIT, b" "),
        (GROUP, entries.JSON_LIMIT, b" "),
        (TTIR, entries.TEXT_LIMIT, b"\n"),
        (CODE, entries.BINARY_LIMIT, b"\0"),
    ],
    ids=[METADATA, GROUP, TTIR, CODE],
)
def test_a_file_is_read_up_to_its_limit_and_no_further(folder: Path, file: str, limit: int, padding: bytes):
    with (folder / file).open("ab") as stream:
        stream.write(padding * (limit - stream.tell()))
    assert isinstance(read(folder).content, Entry)
    with (folder / file).open("ab") as stream:
        stream.write(padding)
    content = read(folder).content
    assert isinstance(content, Broken)
    assert content.reason == f"{file} claims {limit + 1:,} bytes, over {limit:,}"


def test_an_entry_may_have_as_many_files_as_its_limit(folder: Path):
    for number in range(entries.FILES_LIMIT - len(list(folder.iterdir()))):
        (folder / f"{number}.txt").touch()
    assert isinstance(read(folder).content, Entry)
    (folder / "one.more").touch()
    assert read(folder).content == Broken(f"more than {entries.FILES_LIMIT} files", known=False)


def test_directories_are_entered_up_to_the_limit(tmp_path: Path):
    write_entry(tmp_path.joinpath(*["d"] * entries.DEPTH_LIMIT), Made())
    result = scan([tmp_path])
    assert result.rows == ()
    assert "not entered" in result.skipped[0].reason
    other = tmp_path / "other"
    write_entry(other.joinpath(*["d"] * (entries.DEPTH_LIMIT - 1)), Made())
    assert len(scan([other]).rows) == 1
