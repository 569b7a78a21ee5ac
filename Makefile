# From a fresh clone on a machine with only Python: `make demo` and `make test` do all of their own set-up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --disable-pip-version-check install --quiet
OUT    ?= demo-output
INPUTS := pyproject.toml constraints.txt src/trimlearn/_version.py

.PHONY: venv lint types test demo bench clean

venv: $(VENV)/.dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp file is newer than what it was installed from. The demo needs neither torch nor the test tools.
$(VENV)/.demo: $(INPUTS) | $(BIN)/python
	$(PIP) -c constraints.txt -e ".[cli]"
	touch $@

# torch by its exact version: a range would take the newest build, with gigabytes of CUDA.
$(VENV)/.dev: $(INPUTS) | $(BIN)/python
	$(PIP) -c constraints.txt torch==$(shell sed -n 's/^torch==//p' constraints.txt)
	$(PIP) -c constraints.txt -e ".[dev,torch]"
	touch $@ $(VENV)/.demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

# Two workers with one BLAS thread each: two cores, no more threads than that.
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2

demo: $(VENV)/.demo
	$(BIN)/trimlearn demo --out $(OUT)

# R's robustbase joins in where it is installed (Debian: r-base-core, r-cran-robustbase).
bench: $(VENV)/.dev
	$(PIP) -c constraints.txt -e ".[bench]"
	for name in floor rates growth small peers large; do $(BIN)/python -m benchmarks $$name || exit 1; done
	$(BIN)/python -m benchmarks report

clean:
	rm -rf $(VENV) $(OUT) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
