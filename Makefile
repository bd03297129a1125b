PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# The tests start hundreds of processes, and each takes twice as long if Python cannot cache its bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help test test-oldest long docker browser docs check format stubs tables bench demo figures constraints clean
help:            ## show this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*##/\t/'

# Touched last, so that a failed install is repeated and an unchanged one is skipped. With --no-compile, Python compiles
# only what it imports; pip would compile everything.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]' --constraint constraints.txt
	touch $@

# Federations wait more than they compute, so three workers fill two cores; the largest need both cores alone.
test: $(STAMP)   ## run the tests
	$(BIN)/pytest -n 3 -m 'not long and not docker and not browser' --ignore tests/federation/test_scale.py
	$(BIN)/pytest tests/federation/test_scale.py

# The lowest versions that pyproject.toml allows, and the tools of constraints.txt.
OLDEST := .venv-oldest/.installed
$(OLDEST): $(STAMP)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-oldest
	$(BIN)/uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct --editable .
	$(BIN)/uv pip freeze --quiet --python .venv-oldest/bin/python --exclude-editable > .venv-oldest/versions.txt
	grep -E '^(pytest|pytest-timeout|pytest-xdist|hypothesis)==' constraints.txt >> .venv-oldest/versions.txt
	$(BIN)/uv pip install --quiet --python .venv-oldest/bin/python --constraint .venv-oldest/versions.txt \
	    pytest pytest-timeout pytest-xdist hypothesis cvxpy scikit-learn
	touch $@

# Old versions use parts of the newest ones that are deprecated.
test-oldest: $(OLDEST) ## run the fast tests with the lowest versions that pyproject.toml allows
	NUMBA_CACHE_DIR=.venv-oldest/kernels .venv-oldest/bin/python -m pytest -n 3 -p no:cacheprovider \
	    -W ignore::DeprecationWarning \
	    -m 'not long and not docker and not browser and not golden' tests/common tests/server tests/client \
	    tests/solve tests/data tests/model tests/federation/test_same_bytes.py

# Forty restarts take one minute, or three on a busy machine.
long: $(STAMP)   ## run the slow tests: repeated crashes, ten thousand bad messages
	$(BIN)/pytest -n 3 -m long --timeout 600

# If no image registry can be reached, set FISM_BASE to another base image.
docker: $(STAMP) ## run the tests with real containers, and validate the Kubernetes manifest
	$(BIN)/pytest -m docker
	$(BIN)/kubernetes-validate --strict deploy/kubernetes.yaml

browser: $(STAMP) ## test the report and the live page in Chromium
	$(BIN)/pytest -m browser

docs: $(STAMP)   ## build the documentation in docs/_build/html
	$(BIN)/sphinx-build --fail-on-warning --keep-going --nitpicky --quiet docs docs/_build/html

check: $(STAMP)  ## lint, types, import rules, fresh stubs, known vulnerabilities of dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/stubs.py --check
	$(BIN)/python scripts/tables.py --check
	$(BIN)/python scripts/audit.py

format: $(STAMP) ## format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

stubs: $(STAMP)  ## generate the gRPC stubs from proto/
	$(BIN)/python scripts/stubs.py

tables: $(STAMP) ## write the tables in docs/ that derive from the code
	$(BIN)/python scripts/tables.py

bench: $(STAMP)  ## measure every speed claim, as ratios within one run
	$(BIN)/python benchmarks/run.py

demo: $(STAMP)   ## run a federation of four hospitals on this host, and show its benefit
	$(BIN)/python examples/hospitals/demo.py

figures: $(STAMP) ## draw the figures in docs/
	$(BIN)/python scripts/figures.py
	$(BIN)/python scripts/screenshot.py

constraints:     ## pin the newest versions
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m pip freeze --exclude fism > constraints.txt

clean:           ## remove everything that make created
	rm -rf .venv .venv-oldest .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist docs/_build
