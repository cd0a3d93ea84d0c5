"""`jitaudit gate` as JUnit XML: a suite a target, a case a kernel."""

from __future__ import annotations

from xml.etree import ElementTree

from jitaudit.gating import Gate
from jitaudit.gating.verdicts import Verdict
from jitaudit.report.failures import excuse, failure, note_lines


def junit(gate: Gate) -> str:
    """The XML. A suppressed breach is a skipped case."""
    root = ElementTree.Element("testsuites", name="jitaudit gate")
    for target in gate.targets:
        verdicts = [verdict for verdict in gate.verdicts if verdict.target == target]
        cases = [_case(verdict, gate) for verdict in verdicts]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=f"jitaudit {target}",
            tests=str(len(cases)),
            failures=str(sum(verdict.fails for verdict in verdicts)),
            errors="0",
            skipped=str(sum(case.find("skipped") is not None for case in cases)),
        )
        suite.extend(cases)
        if notes := note_lines(gate):
            ElementTree.SubElement(suite, "system-out").text = _legal("\n".join(notes))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _case(verdict: Verdict, gate: Gate) -> ElementTree.Element:
    module, _, name = verdict.name.rpartition(":")
    case = ElementTree.Element("testcase", classname=_legal(module), name=_legal(name))
    if verdict.file is not None:
        case.set("file", _legal(verdict.file))
    if verdict.line is not None:
        case.set("line", str(verdict.line))
    if verdict.fails:
        first, *body = failure(verdict, gate)
        told = ElementTree.SubElement(case, "failure", type=verdict.word, message=_legal(first))
        told.text = _legal("\n".join([first, *body]))
    elif verdict.breaches:
        ElementTree.SubElement(case, "skipped", message=_legal(excuse(verdict.breaches[0])))
    return case


def _legal(text: str) -> str:
    """Without the control characters that XML has no way to write."""
    return "".join(letter for letter in text if letter >= " " or letter in "\n\t")
