"""`jitaudit gate` as GitHub's workflow commands: an annotation at each kernel that fails."""

from __future__ import annotations

from jitaudit.gating import Gate
from jitaudit.report.failures import failure, failures, title


def github(gate: Gate) -> str:
    """A line an annotation: errors for what fails, warnings for the notes. GitHub shows the first ten of each."""
    lines = []
    for verdict in failures(gate):
        first, *body = failure(verdict, gate)
        breach = next(breach for breach in verdict.breaches if breach.fails)
        place = {"file": verdict.file} if verdict.file is not None else {}
        place |= {"line": str(verdict.line)} if verdict.line is not None else {}
        heading = f"{breach.word} {title(verdict, gate)} ({breach.code})"
        lines.append(_command("error", place | {"title": heading}, "\n".join([first, *body])))
    for note in gate.notes:
        heading = f"{note.code} {note.name}"
        lines.append(_command("warning", {"title": heading}, f"{note.kernel or note.sweep}: {note.message}"))
    return "".join(f"{line}\n" for line in lines)


def _command(level: str, properties: dict[str, str], message: str) -> str:
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {written}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
