"""Who can change a cache directory: owners, modes, groups and links, on the directory and all the way down to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jitaudit.jit.trust import others_with_access

STRANGER = 54321

CASES = {
    "nobody else": ("cache", {}, []),
    "not there yet": ("cache/later/still", {}, []),
    "a link of one's own": ("link", {}, []),
    "sticky above, as /tmp is": ("cache", {"above": 0o1777}, []),
    "world-writable": ("cache", {"cache": 0o777}, ["anyone can write in {cache}"]),
    "sticky itself": ("cache", {"cache": 0o1777}, ["anyone can write in {cache}"]),
    "world-writable above": ("cache", {"above": 0o777}, ["anyone can write in {above}"]),
    "world-writable, not there yet": ("cache/later", {"above": 0o777}, ["anyone can write in {above}"]),
    "a link's world-writable target": ("link", {"cache": 0o777}, ["anyone can write in {cache}"]),
    "world-writable above a link's target": ("link", {"above": 0o777}, ["anyone can write in {above}"]),
}
"""Name → the path that is asked about, what has which mode, and what is said."""

AS_ROOT = {
    "another owner": ("cache", {"cache": "owner"}, ["{cache} belongs to uid 54321"]),
    "another owner above": ("cache", {"above": "owner"}, ["{above} belongs to uid 54321"]),
    "another group": ("cache", {"cache": "group"}, ["group 54321 can write in {cache}"]),
    "another group above": ("cache", {"above": "group"}, ["group 54321 can write in {above}"]),
    "a group that only reads": ("cache", {"cache": "readers"}, []),
    "another's link": ("link", {"link": "owner"}, ["{link} is a symbolic link of uid 54321"]),
    "another's link above": (
        "link_above/cache", {"link_above": "owner"}, ["{link_above} is a symbolic link of uid 54321"]
    ),
    "another owner of a link's target": ("link", {"cache": "owner"}, ["{cache} belongs to uid 54321"]),
}  # fmt: skip
"""What only root can arrange: it gives files away."""


@pytest.mark.parametrize("name", [*CASES, *AS_ROOT])
def test_others_with_access(name: str, tmp_path: Path) -> None:
    if name in AS_ROOT and os.getuid() != 0:
        pytest.skip("only root can give files away")
    asked, changes, expected = (CASES | AS_ROOT)[name]
    places = {
        "above": tmp_path / "above",
        "cache": tmp_path / "above" / "cache",
        "link": tmp_path / "link",
        "link_above": tmp_path / "link_above",
    }
    places["cache"].mkdir(parents=True)
    places["link"].symlink_to(places["cache"])
    places["link_above"].symlink_to(places["above"])
    for folder in (tmp_path, places["above"], places["cache"]):
        folder.chmod(0o755)
    known = set(others_with_access(tmp_path))  # of what lies above the test's own folder
    for place, change in changes.items():
        _change(places[place], change)
    first, *rest = asked.split("/")
    found = [line for line in others_with_access(places[first].joinpath(*rest)) if line not in known]
    assert found == [line.format(**places) for line in expected]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert [line for line in others_with_access(tmp_path / "a") if str(tmp_path) in line] == []


def _change(path: Path, change: int | str) -> None:
    match change:
        case "owner":
            os.chown(path, STRANGER, -1, follow_symlinks=False)
        case "group" | "readers":
            os.chown(path, -1, STRANGER)
            path.chmod(0o775 if change == "group" else 0o755)
        case int():
            path.chmod(change)
