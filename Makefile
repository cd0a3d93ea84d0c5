# `make probe` and `make test` on a machine that has python3 >= 3.11 and make, and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
OTHER_TRITONS := 3.6.0 3.8.0 3.9.0
# Tests of one xdist_group share what is dear to set up.
PYTEST := -m pytest -n auto --dist loadgroup

.PHONY: probe test test-nightly test-gpu check gate bench bench-gpu evidence test-matrix $(OTHER_TRITONS:%=test-triton-%)
.DEFAULT_GOAL := test

probe: $(READY)
	$(BIN)/jitaudit probe

test: check gate
	$(BIN)/python $(PYTEST) -m "not nightly" tests/cpu
# TRITON_INTERPRET acts when a kernel is decorated: a process of its own.
	TRITON_INTERPRET=1 $(BIN)/python $(PYTEST) -m "not nightly" tests/interpreter

# Every kill, flip, cut and round of warm's fault tests; every mutant of every kernel.
test-nightly: $(READY)
	$(BIN)/python $(PYTEST) -m nightly tests/cpu
	TRITON_INTERPRET=1 $(BIN)/python $(PYTEST) -m nightly tests/interpreter

# On a GPU machine, with the Python, torch and Triton that are there: PYTHON must find jitaudit and jitaudit_kernels.
test-gpu:
	$(PYTHON) -m pytest tests/gpu

# What a capture costs, and warm beside a loop, with no GPU.
bench: $(READY)
	$(BIN)/python -m benchmarks.capture
	$(BIN)/python -m benchmarks.warm

bench-gpu:
	$(PYTHON) -m benchmarks.gpu -o reports/bench.json

# All that later wants a GPU, as one script; with none it measures the compile part.
evidence:
	$(PYTHON) -m benchmarks.evidence

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict jitaudit
	$(BIN)/lint-imports --no-logo

# The project is its own first user: [tool.jitaudit] and jitaudit.lock.json.
gate: $(READY)
	$(BIN)/jitaudit gate
	$(BIN)/jitaudit gate --group baseline

test-matrix: $(OTHER_TRITONS:%=test-triton-%)

$(OTHER_TRITONS:%=test-triton-%): test-triton-%: .venv-%/.installed
	.venv-$*/bin/python $(PYTEST) -m "matrix and not nightly" tests/cpu

$(READY): pyproject.toml constraints.txt tests/launchers/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"jitaudit needs Python 3.11 or newer; {sys.executable} is {sys.version}; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[triton,test]'
	$(BIN)/pip install --quiet --no-deps --requirement tests/launchers/requirements.txt
	@touch $@

# An environment that holds one other Triton and finds everything else in $(VENV): a pip that resolved torch and
# that Triton together would refuse, since torch's CUDA build pins its own.
.venv-%/.installed: $(READY)
	$(PYTHON) -m venv --without-pip $(@D)
	$(BIN)/pip --python $(@D) install --quiet --no-deps triton==$*
	$(@D)/bin/python -c 'import pathlib, sys, sysconfig; \
	  pathlib.Path(sysconfig.get_path("purelib"), "base.pth").write_text(f"import site; site.addsitedir({sys.argv[1]!r})\n")' \
	  "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@
