"""From a server's log to sightings: vLLM's JIT monitor and SGLang's load watcher, as vLLM 0.33 and SGLang 0.5 write.

Both speak only after the server is ready, so each of their lines is a late one. Neither names the module of a kernel.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from jitaudit.errors import RequestError
from jitaudit.jit.ttir import printable
from jitaudit.model import VariantKey
from jitaudit.scanning.sightings import NANOSECONDS, Reading, Sighting, Skipped
from jitaudit.scanning.verbose import verbose_keys

LINE_LIMIT = 1 << 16
"""Bytes of one line; the rest of it counts as another line."""

Engine = Literal["vLLM", "SGLang"]


def read_logs(paths: Sequence[Path]) -> Reading:
    """The late compiles that the logs tell of. Raises RequestError for a log of neither engine."""
    readings = [_Log(path, f"{path.as_posix()} " if len(paths) > 1 else "").read() for path in paths]
    events = [event for reading in readings for event in reading.events]
    notes = dict.fromkeys(note for reading in readings for note in reading.notes())
    return Reading(
        origin="log",
        sightings=tuple(_sightings(events)),
        skipped=tuple(skipped for reading in readings for skipped in reading.skipped),
        notes=tuple(notes),
    )


class _Event(msgspec.Struct, frozen=True):
    """A line that tells of a compile."""

    kernel: str
    place: str
    written: int | None
    details: str | None = None
    seconds: float | None = None


def _sightings(events: Sequence[_Event]) -> Iterator[Sighting]:
    """Events with keys. Lines that tell none are numbered within their process, where each is another variant."""
    keys = verbose_keys([(event.kernel, event.details) for event in events])
    numbers: Counter[tuple[str, str]] = Counter()
    for event, key in zip(events, keys, strict=True):
        if key is None:
            numbers[event.kernel, event.place] += 1
            key = VariantKey(arguments={"<arguments>": f"opaque #{numbers[event.kernel, event.place]}"}, options={})
        yield Sighting(
            kernel=event.kernel,
            key=key,
            identity=f"{event.kernel} {key.text}",
            place=event.place,
            written=event.written,
            seconds=event.seconds,
        )


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_VLLM_HEADER = re.compile(
    r"(?:\((?P<process>[^()]+) pid=(?P<pid>\d+)\) )?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(?P<time>\d\d-\d\d \d\d:\d\d:\d\d) \[[^\]\s]+:\d+\] "
)
_SGLANG_HEADER = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)?(?P<rank>(?: (?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*)\] "
)
_VLLM_EVENT = re.compile(
    r"\b(?P<backend>\w+) (?:kernel )?JIT compilation during inference: (?P<kernel>[^\s(]+?)"
    r"(?: \((?P<details>.*)\))?\. This causes a latency spike"
)
_VLLM_TUNED = re.compile(r"Triton autotuning for function (?P<kernel>[^\s,]+),")
_SGLANG_COMPILE = re.compile(r"Triton kernel '(?P<kernel>[^']+)' took (?P<seconds>\d+\.\d+) s to compile after")
_SGLANG_LOAD = re.compile(r"Triton kernel '(?P<kernel>[^']+)' device-loaded after serving started")


def _engine(text: str) -> Engine | None:
    """Who wrote a line, by its header. SGLang's is one that others use too, without a rank or its name."""
    if _VLLM_HEADER.search(text):
        return "vLLM"
    header = _SGLANG_HEADER.search(text)
    return "SGLang" if header and (header["rank"] or "sglang" in text or "ServerArgs(" in text) else None


class _Log:
    """One log's way through its lines."""

    def __init__(self, path: Path, above: str) -> None:
        self._path, self._above = path, above
        self._modified = 0
        self.engine: Engine | None = None
        self.events: list[_Event] = []
        self.skipped: list[Skipped] = []
        self._loads: Counter[str] = Counter()
        self._tuned: Counter[str] = Counter()
        self._others: Counter[str] = Counter()
        self._raised: set[str] = set()
        self._monitored = False

    def read(self) -> _Log:
        try:
            self._modified = int(self._path.stat().st_mtime)
            with self._path.open("rb") as raw:
                self._read(raw)
        except OSError as error:
            raise RequestError(f"{self._path}: can't be read: {error.strerror or error}") from None
        if self.engine is None:
            raise RequestError(
                f"{self._path}: a log of neither vLLM nor SGLang, as far as its lines tell; "
                "a cache directory is scanned by its own path"
            )
        return self

    def notes(self) -> Iterator[str]:
        if self.engine == "vLLM":
            if not (self._monitored or self.events):
                yield f"{self._path}: vLLM's JIT monitor was never activated in this log: it proves nothing"
            yield "vLLM's monitor does not tell a compile from a hit in the cache directory: a line is one or the other"
            if any(event.details is None for event in self.events):
                yield (
                    "plain vLLM lines come once a kernel and process, on the first rank of a host only, without a key; "
                    "--jit-monitor-verbose has every one, with its key"
                )
        else:
            yield (
                "SGLang's watcher names compiles from SGLANG_TRITON_SLOW_COMPILE_THRESHOLD_SECS (1 s) and loads only "
                "when memory is short: quicker ones are not in the log, and none has a key"
            )
        for kernel, count in sorted(self._loads.items()):
            yield f"{kernel}: {count:,} late module {'load' if count == 1 else 'loads'}, no compile"
        for kernel, count in sorted(self._tuned.items()):
            yield f"{kernel}: autotuned {count:,} {'time' if count == 1 else 'times'} while serving"
        for backend, count in sorted(self._others.items()):
            yield f"{count:,} {'line is' if count == 1 else 'lines are'} {backend}'s, not Triton's: left out"

    def _read(self, raw: BinaryIO) -> None:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if packed else raw
        number = 0
        try:
            while line := stream.readline(LINE_LIMIT):
                number += 1
                if self.engine is None or b"JIT" in line or b"Triton" in line:
                    self._line(number, line)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            if number == 0:
                raise RequestError(f"{self._path}: can't be unpacked: {error}") from None
            self._skip(number, "the packed file is torn here; what follows is lost")

    def _line(self, number: int, line: bytes) -> None:
        text = _message(_COLOUR.sub("", line.decode(errors="backslashreplace").rstrip("\r\n")))
        self.engine = self.engine or _engine(text)
        if "JIT monitor activated" in text:
            self._monitored = True
        elif tuned := _VLLM_TUNED.search(text):
            self._tuned[printable(tuned["kernel"])] += 1
        elif " JIT compilation during inference: " in text:
            self.engine = "vLLM"
            self._vllm(number, text)
        elif "Triton kernel '" in text:
            self._sglang(number, text)

    def _vllm(self, number: int, text: str) -> None:
        event, header = _VLLM_EVENT.search(text), _VLLM_HEADER.search(text)
        if event is None:
            self._skip(number, "a line of the JIT monitor, cut short")
        elif event["backend"] != "Triton":
            self._others[event["backend"]] += 1
        elif "RuntimeError: " not in text or event[0] not in self._raised:
            self._raised.add(event[0])  # with mode=error each process that sees the traceback logs it again
            self.events.append(
                _Event(
                    kernel=printable(event["kernel"]),
                    place=self._above + (_process(header) if header else ""),
                    written=self._monthly(header["time"]) if header else None,
                    details=event["details"],
                )
            )

    def _sglang(self, number: int, text: str) -> None:
        header = _SGLANG_HEADER.search(text)
        if event := _SGLANG_COMPILE.search(text):
            self.engine = "SGLang"
            self.events.append(
                _Event(
                    kernel=printable(event["kernel"]),
                    place=self._above + (header["rank"].strip() if header else ""),
                    written=_nanoseconds(header["time"]) if header else None,
                    seconds=float(event["seconds"]),
                )
            )
        elif event := _SGLANG_LOAD.search(text):
            self.engine = "SGLang"
            self._loads[printable(event["kernel"])] += 1
        elif self.engine == "SGLang":
            self._skip(number, "a line of the load watcher, cut short")

    def _skip(self, number: int, reason: str) -> None:
        self.skipped.append(Skipped(f"{self._path.as_posix()}:{number}", reason))

    def _monthly(self, text: str) -> int | None:
        """vLLM writes no year: the last one that does not put the line after the file's own last change."""
        year = datetime.fromtimestamp(self._modified, UTC).year
        for candidate in range(year, year - 9, -1):  # 29 February comes every eight years at worst
            written = _nanoseconds(f"{candidate}-{text}")
            if written is not None and written <= (self._modified + _ZONES) * NANOSECONDS:
                return written
        return None


_ZONES = 14 * 3600
"""Seconds by which a log's clock, in its own time zone, may be ahead of UTC."""


def _message(text: str) -> str:
    """The text of a line that a JSON formatter or a container runtime wrapped; any other line as it is."""
    if not text.startswith("{"):
        return text
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if "message" not in fields:
        return str(fields.get("log", text))
    process = f"({fields['processName']} pid={fields['process']}) " if "processName" in fields else ""
    time = re.sub(r"^\d{4}-|[,.]\d+$", "", str(fields.get("asctime", "")))
    return f"{process}{fields.get('levelname', 'INFO')} {time} [{fields.get('name', '')}:0] {fields['message']}"


def _process(header: re.Match[str]) -> str:
    return printable(f"{header['process']} pid={header['pid']}") if header["process"] else ""


def _nanoseconds(text: str) -> int | None:
    try:
        return int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()) * NANOSECONDS
    except ValueError:
        return None
