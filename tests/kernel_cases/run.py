"""Run the cases of one module until one fails: ``python -m kernel_cases.run MODULE PACKAGE``, for mutants.

Exits 0 when all pass, 1 with a line on the first that does not; a crash is its own exit code.
"""

from __future__ import annotations

import importlib
import sys

import torch

SIZES = (0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 128)


def main(module: str, package: str) -> None:
    """Judge the kernels of the copy that lies in the folder ``package``."""
    import jitaudit_kernels

    assert jitaudit_kernels.__path__ == [package], jitaudit_kernels.__path__
    from kernel_cases.compare import compare

    for case in importlib.import_module(f"kernel_cases.{module}").cases(SIZES):
        try:
            compare(case, torch.device("cpu"))
        except Exception as error:
            sys.exit(f"{case.name}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
