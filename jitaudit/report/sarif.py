"""`jitaudit gate` as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import PurePosixPath
from urllib.parse import quote

import msgspec

from jitaudit.gating import Gate
from jitaudit.gating.verdicts import CODES, NOTES, Breach, Verdict
from jitaudit.model import Finding

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

Json = dict[str, object]


def sarif(gate: Gate) -> str:
    """One run: a result for each breach and note. What is excused is a suppressed result."""
    names = {code: name for code, (name, _) in CODES.items()} | NOTES
    results = [_breach(verdict, breach) for verdict in gate.verdicts for breach in verdict.breaches]
    results += [_note(note) for note in gate.notes]
    used = sorted({str(result["ruleId"]) for result in results})
    driver: Json = {"name": "jitaudit", "version": version("jitaudit"), "rules": [_rule(code, names) for code in used]}
    for result in results:
        result["ruleIndex"] = used.index(str(result["ruleId"]))
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _rule(code: str, names: dict[str, str]) -> Json:
    name = names[code]
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in name.split("-")),
        "shortDescription": {"text": name},
        "help": {"text": f"jitaudit rule {code}"},
    }


def _breach(verdict: Verdict, breach: Breach) -> Json:
    said = [f"{breach.word} {verdict.name}: {breach.message}"]
    said += [f"{title}: {text}" for title, text in _parts(breach) if text]
    result: Json = {
        "ruleId": breach.code,
        "level": "error" if breach.fails else "note",
        "message": {"text": "\n".join(said)},
        "partialFingerprints": {"jitaudit/v1": f"{breach.code} {verdict.target} {verdict.name}"},
        "locations": [_location(verdict)],
    }
    if breach.excused is not None:
        result["suppressions"] = [{"kind": "external", "justification": breach.excused}]
    return result


def _parts(breach: Breach) -> tuple[tuple[str, str], ...]:
    return ("Cause", breach.cause), ("Remedy", breach.remedy), ("Run", breach.command)


def _note(note: Finding) -> Json:
    return {
        "ruleId": note.code,
        "level": "warning",
        "message": {"text": f"{note.kernel or note.sweep}: {note.message}"},
    }


def _location(verdict: Verdict) -> Json:
    location: Json = {"logicalLocations": [{"fullyQualifiedName": verdict.name, "kind": "function"}]}
    if verdict.file is not None:
        path = PurePosixPath(verdict.file)
        uri = path.as_uri() if path.is_absolute() else quote(verdict.file)
        region = {} if verdict.line is None else {"region": {"startLine": verdict.line}}
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}} | region
    return location
