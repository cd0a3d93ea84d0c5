"""From a cache directory to sightings."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from jitaudit.errors import RequestError, SetupError
from jitaudit.jit.entries import Broken, Companion, Entry, Found, read_cache
from jitaudit.model import VariantKey
from jitaudit.scanning.sightings import UNKNOWN, Reading, Sighting, Skipped
from jitaudit.scanning.sources import Sources


def read_caches(paths: Sequence[Path]) -> Reading:
    """Every entry below the directories.

    Raises RequestError for a directory that is empty or no cache, SetupError for one that can't be read.
    """
    sources = Sources()
    sightings: list[Sighting] = []
    skipped: list[Skipped] = []
    companions: Counter[str] = Counter()
    for path in paths:
        above = f"{path.as_posix()}/" if len(paths) > 1 else ""
        for found in entries(path):
            match found.content:
                case Entry() as entry:
                    sightings.append(_sighting(found, entry, above, sources))
                case Broken(reason=reason):
                    skipped.append(Skipped(above + found.path, reason))
                case Companion(kind=kind):
                    companions[kind] += 1
    return Reading(
        origin="cache",
        sightings=tuple(sightings),
        skipped=tuple(skipped),
        notes=tuple(_notes(sightings, companions)),
    )


def entries(path: Path) -> Iterator[Found]:
    """What lies below one directory. Raises as `read_caches` does."""
    seen = False
    try:
        for found in read_cache(os.fspath(path)):
            seen = True
            yield found
        if not seen and not any(path.iterdir()):
            raise RequestError(f"{path}: is empty; jitaudit doctor says where the caches are")
    except OSError as error:
        raise SetupError(f"{path}: can't be read: {error.strerror}") from None
    if not seen:
        raise RequestError(f"{path}: no Triton cache: no entry below it; jitaudit doctor says where the caches are")


def _sighting(found: Found, entry: Entry, above: str, sources: Sources) -> Sighting:
    signature = entry.signature
    arguments = signature.arguments if signature else {}
    file, line = (signature.file, signature.line) if signature else ("", 0)
    definition = sources.definition(file, line, entry.kernel, arguments) if file else None
    parameters = definition.parameters if definition else ()
    texts = {parameter.name: arguments.get(parameter.name, "folded") for parameter in parameters} or dict(arguments)
    for annotated in definition.annotated if definition else ():
        texts[annotated] = re.sub(r"^([iu]\d+) any$", r"\1 =1|any", texts[annotated])
    if "folded" in texts.values() or not parameters:
        # The values are in the hash and nowhere else: it keeps entries apart that look alike.
        texts["<folded>" if signature else "<arguments>"] = f"opaque {entry.digest[:13]}"
    name = definition.qualname if definition else entry.kernel
    return Sighting(
        kernel=f"{sources.module(file)}:{name}" if file else name,
        key=VariantKey(arguments=texts, options=entry.options),
        identity=entry.digest,
        place=_place(above, found.path),
        written=found.written,
        target=entry.target,
        triton=entry.triton or UNKNOWN,
        file=file,
        line=line - (definition.decorators if definition else 0),
        parameters=parameters,
        variables=entry.variables,
        bytes=found.bytes,
        binary=entry.binary,
        moved=entry.moved,
    )


def _place(above: str, path: str) -> str:
    parent = str(PurePosixPath(path).parent)
    return above.rstrip("/") if parent == "." else above + parent


def _notes(sightings: list[Sighting], companions: Counter[str]) -> Iterator[str]:
    if moved := sum(sighting.moved for sighting in sightings):
        yield (
            f"{moved:,} of {len(sightings):,} entries say that their files lie in another directory: Triton finds them "
            "only there (a copied or mounted cache)"
        )
    for kind, count in sorted(companions.items()):
        yield f"{count:,} more {'directory holds' if count == 1 else 'directories hold'} a {kind}, no kernel"
