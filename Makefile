# From a fresh clone on a machine with only Python: `make demo` and `make test` do all of their own set-up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --disable-pip-version-check install --quiet
OUT    ?= demo-output
BASE   := .venv-base
LOWEST := .venv-lowest
INPUTS := pyproject.toml constraints.txt src/trimlearn/_version.py

# Two workers with one BLAS thread each: two cores, no more threads than that.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# Tests that old versions of other packages could break: array operations, threads, files, the estimators' examples.
OLD := $(addprefix src/trimlearn/,losses regularizers smart robust inference estimators datasets weights _utils \
           problem.py solve.py checkpoint) \
       $(addprefix tests/,test_problem.py inference/test_table.py robust/test_scale.py robust/test_lts.py smart/test_algorithm.py \
           _utils/test_threads.py weights estimators/test_detector.py estimators/test_path.py)
WITH_EXTRAS := estimators/formula.py datasets/penguins.py _utils/graphs.py
READING := $(addprefix tests/,test_docs.py test_site.py benchmarks/test_benchmarks.py test_datasets.py test_cli.py _utils/test_files.py test_problem.py)

.PHONY: venv lint types test test-browser base lowest sdist docs demo paper bench clean

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
	$(PIP) -c constraints.txt -e ".[dev,loops]"
	touch $@ $(VENV)/.demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/python tests/lint_docstrings.py

types: $(VENV)/.dev
	$(BIN)/mypy

test: $(VENV)/.dev
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist worksteal

# The page of a check in a real browser, one test after the other: they are timed. Without chromium they are skipped, and say so.
test-browser: $(VENV)/.dev
	$(PIP) -c constraints.txt -e ".[browser]"
	TRIMLEARN_BROWSER=1 $(ONE_THREAD) $(BIN)/python -m pytest -q -p no:xdist tests/browser

# What a plain `pip install .` can do: the README's example, and those of every page that needs neither images nor pandas.
base: $(INPUTS)
	test -x $(BASE)/bin/python || $(PYTHON) -m venv $(BASE)
	$(BASE)/bin/pip --disable-pip-version-check install --quiet -c constraints.txt .
	$(BASE)/bin/python tests/blocks.py README.md $(filter-out $(addprefix docs/,check.md stitching.md formula.md cells.md plots.md torch.md torch_trim.md gpu.md scale.md dask.md),$(wildcard docs/*.md))

# The lowest versions that pyproject.toml names ("numpy>=1.26" gives numpy==1.26.*), and tests that take a minute or two.
lowest: $(INPUTS)
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -c "import tomllib; \
	    print(*(d.replace('>=', '==') + '.*' for d in tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']), sep='\n')" \
	    > $(LOWEST)/versions.txt
	$(LOWEST)/bin/pip --disable-pip-version-check install --quiet -c $(LOWEST)/versions.txt -e . \
	    "pytest==8.*" "pytest-xdist>=3.6" "pytest-timeout>=2.3" "hypothesis>=6.100"
	$(ONE_THREAD) $(LOWEST)/bin/python -m pytest -q -n 2 $(addprefix --ignore=src/trimlearn/,$(WITH_EXTRAS)) $(OLD)

# What is published is whole: every test is found in the unpacked sdist, and those that read other files pass there.
sdist: $(VENV)/.dev
	$(PIP) "hatchling>=1.24"
	rm -rf build/sdist
	$(BIN)/python -m hatchling build --target sdist --directory build/sdist
	tar -xzf build/sdist/*.tar.gz -C build/sdist --strip-components=1
	cd build/sdist && PYTHONPATH=src $(abspath $(BIN))/python -m pytest -qq --collect-only > collected.txt || { tail -30 collected.txt; exit 1; }
	cd build/sdist && PYTHONPATH=src $(ONE_THREAD) $(abspath $(BIN))/python -m pytest -q -n 2 $(READING)

# The site, in build/docs: pages, examples with their pictures, the reference. Nothing is fetched, and a warning is an error.
$(VENV)/.docs: $(VENV)/.dev
	$(PIP) -c constraints.txt -e ".[docs]"
	touch $@

docs: $(VENV)/.docs
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs

demo: $(VENV)/.demo
	$(BIN)/trimlearn demo --out $(OUT)

# The paper's tables and figures, in paper-output/. DATA holds mnist/, vlfeat/, oxford_affine/ and panorama/.
DATA ?= $(TRIMLEARN_DATA)
paper: $(VENV)/.dev
	$(PIP) -c constraints.txt -e ".[vision,cli]"
	$(BIN)/python -m paper all --out paper-output $(if $(DATA),--data $(DATA))

# R's robustbase joins in where it is installed (Debian: r-base-core, r-cran-robustbase).
bench: $(VENV)/.dev
	$(PIP) -c constraints.txt -e ".[bench]"
	for name in floor cores rates growth small peers large battery probability trust walk; do $(BIN)/python -m benchmarks $$name || exit 1; done
	$(BIN)/python -m benchmarks report

clean:
	rm -rf $(VENV) $(BASE) $(LOWEST) $(OUT) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
