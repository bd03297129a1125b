PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# The tests start hundreds of processes: where Python may not keep what it compiled, each takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help test long docker browser docs check format stubs bench demo figures constraints clean
help:            ## show this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:[^#]*##/\t/'

# Touched last: a broken install is redone, an unchanged one costs nothing. Python compiles what it imports, pip all.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]' --constraint constraints.txt
	touch $@

# Federations wait more than they compute, so that three fill two cores; the largest fill them alone.
test: $(STAMP)   ## run the tests
	$(BIN)/pytest -n 3 -m 'not long and not docker and not browser' --ignore tests/federation/test_scale.py
	$(BIN)/pytest tests/federation/test_scale.py

# A machine may be busy with others: forty restarts take one minute, or three.
long: $(STAMP)   ## run the tests that take long: machines that die again and again, ten thousand bad messages
	$(BIN)/pytest -n 3 -m long --timeout 600

# Where no image registry is reached, FISM_BASE names another base image.
docker: $(STAMP) ## run the tests with real containers, and check the files for Kubernetes
	$(BIN)/pytest -m docker
	$(BIN)/kubernetes-validate --strict deploy/kubernetes.yaml

browser: $(STAMP) ## look at the report and the live page in Chromium
	$(BIN)/pytest -m browser

docs: $(STAMP)   ## build the documentation to docs/_build/html
	$(BIN)/sphinx-build --fail-on-warning --keep-going --nitpicky --quiet docs docs/_build/html

check: $(STAMP)  ## lint, types, import rules, fresh stubs, known weaknesses of dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/stubs.py --check
	$(BIN)/python scripts/audit.py

format: $(STAMP) ## format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

stubs: $(STAMP)  ## generate the gRPC stubs from proto/
	$(BIN)/python scripts/stubs.py

bench: $(STAMP)  ## measure speed, as ratios in one run on one core
	$(BIN)/python benchmarks/run.py

demo: $(STAMP)   ## a federation of four hospitals on this host, and what it gained
	$(BIN)/python examples/hospitals/demo.py

figures: $(STAMP) ## draw the pictures in docs/
	$(BIN)/python scripts/figures.py
	$(BIN)/python scripts/screenshot.py

constraints:     ## pin the newest versions anew
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m pip freeze --exclude fism > constraints.txt

clean:           ## remove what make made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist docs/_build
