"""The keys in vLLM's verbose lines: ``constexprs={…}; signature={…}; extra_compile_info={…}; key='…'``.

vLLM sorts the signature by name, cuts each value to 120 letters, and takes the classes from Triton's own key, which has
them by position: names and positions meet by type. Where one type has several arguments of different classes, they
stand together as ``n|stride: (i32 any, i32 %16)``, in the order of the parameters; what was cut off is ``opaque``.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from jitaudit.jit.ttir import printable
from jitaudit.model import Scalar, VariantKey

Arguments = dict[str, str]


def verbose_keys(lines: Sequence[tuple[str, str | None]]) -> list[VariantKey | None]:
    """For each (kernel, details): its key; None where the details are missing or in another form."""
    keys = [_read(details) if details else None for _, details in lines]
    runtime: dict[str, set[str]] = defaultdict(set)
    for (kernel, _), key in zip(lines, keys, strict=True):
        for name, text in key.arguments.items() if key else ():
            if not text.startswith(("constexpr ", "none")):
                runtime[kernel].add(name)
    return [
        key and VariantKey(arguments=_alike(key.arguments, runtime[kernel]), options=key.options)
        for (kernel, _), key in zip(lines, keys, strict=True)
    ]


def _alike(arguments: Arguments, runtime: set[str]) -> Arguments:
    """The arguments as the kernel's other lines put theirs: a 1 of an argument that is a runtime one elsewhere is its
    class, no constexpr, and arguments that stand together elsewhere do so here."""
    singles = {part for name in runtime for part in name.split("|")}
    own = {
        name: "i32 =1" if text == "constexpr int 1" and name in singles else text for name, text in arguments.items()
    }
    for joint in sorted(name for name in runtime if "|" in name):
        parts = joint.split("|")
        texts = {own.get(part, "") for part in parts}
        if len(texts) == 1 and texts != {""}:
            own[joint] = f"({', '.join([texts.pop()] * len(parts))})"
            own = {name: text for name, text in own.items() if name not in parts}
    return dict(sorted(own.items()))


def _read(details: str) -> VariantKey | None:
    head, *parts = re.split(r"\}; signature=\{|\}; extra_compile_info=\{|\}; key=", details, maxsplit=3)
    if len(parts) != 3 or not head.startswith("constexprs={"):
        return None
    constexprs = dict(_fields(head.removeprefix("constexprs={")))
    signature = {name: text.strip("'\"") for name, text in _fields(parts[0])}
    extra, key = dict(_fields(parts[1])), parts[2]
    arguments: Arguments = {}
    by_type: dict[str, list[str]] = defaultdict(list)
    for name, kind in signature.items():
        if kind == "constexpr":
            arguments[name] = _constexpr(constexprs.get(name, "..."))
        else:
            by_type[kind].append(name)
    for kind, names in by_type.items():
        arguments |= _classes(kind, names, _letters(key, kind))
    return VariantKey(arguments=dict(sorted(arguments.items())), options=dict(_options(extra)))


VALUE_LIMIT = 120
"""Letters of a value that vLLM writes; a longer one ends in ``...``."""


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """``a=1, b=(2, 3)`` → (a, 1), (b, (2, 3))."""
    at = 0
    while name := re.compile(r"([^=]+)=").match(text, at):
        start, cut = name.end(), name.end() + VALUE_LIMIT
        was_cut = text[cut - 3 : cut] == "..." and text[cut : cut + 2] in ("", ", ")
        end = cut if was_cut else next(_commas(text, start), len(text))
        yield printable(name[1]), printable(text[start:end])
        at = end + 2


def _commas(text: str, start: int = 0) -> Iterator[int]:
    """Where commas stand outside brackets and quotes."""
    depth = 0
    for match in re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|['\"({\[,\])}]").finditer(text, start):
        if match[0] in ("'", '"'):  # a string that was cut
            return
        depth += (match[0] in "({[") - (match[0] in ")}]")
        if match[0] == "," and depth == 0:
            yield match.start()


def _constexpr(text: str) -> str:
    if text.endswith("..."):
        return "constexpr opaque"
    if dtype := re.fullmatch(r"triton\.language\.(\w+)|torch\.(\w+)", text):
        return f"constexpr dtype {dtype[1] or text}"
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return f"constexpr opaque {text}"
    if value is None:
        return "none"
    if type(value) in (bool, int, float):
        return f"constexpr {type(value).__name__} {value!r}"
    return f'constexpr str "{value}"' if type(value) is str else f"constexpr opaque {text}"


def _letters(key: str, kind: str) -> list[str | None]:
    """The class letters that Triton's key has for each argument of this type, in order; none after where it was cut."""
    specialization = key.strip("'\"").replace("\\'", "'").partition("]{")[0].removeprefix("[")
    ends = [*_commas(specialization), len(specialization)]
    items = [specialization[start:end].strip(", ]") for start, end in zip([0, *ends], ends, strict=False)]
    parts = [re.fullmatch(r"\('([^']*)', (?:'([^']*)'|None)\)", item) for item in items]
    return [part[2] for part in parts if part and part[1] == kind]


def _classes(kind: str, names: list[str], letters: list[str | None]) -> Arguments:
    if not re.fullmatch(r"[iu]\d+|\*\w+", kind) or kind == "u1":
        return dict.fromkeys(names, kind)
    if len(letters) != len(names):
        return dict.fromkeys(names, f"{kind} opaque")
    texts = [_class(kind, letter or "") for letter in letters]
    if len(set(texts)) == 1:
        return dict.fromkeys(names, texts[0])
    return {"|".join(sorted(names)): f"({', '.join(texts)})"}


def _class(kind: str, letters: str) -> str:
    if kind.startswith("*"):
        return f"{kind} {'aligned' if 'D' in letters else 'unaligned'}{' <2GB' if 'S' in letters else ''}"
    return f"{kind} {'%16' if 'D' in letters else 'any'}"


def _options(extra: dict[str, str]) -> Iterator[tuple[str, Scalar]]:
    stages = "2" if "ocml" in extra.get("extern_libs", "") else "3"
    defaults = {
        "enable_fp_fusion": "True",
        "launch_cooperative_grid": "False",
        "num_ctas": "1",
        "num_stages": stages,
        "num_warps": "4",
    }
    for name, default in defaults.items():
        text = extra.get(name, default)
        if text != default:
            yield name, int(text) if text.isdecimal() else text == "True"
