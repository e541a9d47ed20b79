# Everything works on a fresh machine with Python 3.11 or newer and make.
# The first Python that runs and is new enough; a version manager's stand-in may be there and not run.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
DEMO_TRACE := tests/fixtures/kineto/dataloader.slow.pt.trace.json.gz

.PHONY: demo test lint format fuzz lock bench pictures clean

demo: .venv/.run  ## Set up, then write demo/report.html from a fixture.
	@$(BIN)/traceanalyzer report $(DEMO_TRACE) -o demo/report.html
	@echo "open demo/report.html in a browser"

test: lint  ## Set up, then run linters, type checks and the whole suite.
	@$(BIN)/python -m compileall -q traceanalyzer  # hundreds of tests start the command anew
	$(BIN)/python -m pytest -n auto

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: .venv/.fuzz  ## Fuzz every reader, or TARGET, for FUZZ_SECONDS each (60); what fails is kept in fuzz/found.
	$(BIN)/python -m fuzz $(TARGET) --seconds $(or $(FUZZ_SECONDS),60) $(FUZZ_OPTIONS)

lock: .venv/.dev  ## Renew ci/requirements.txt, the packages that the Action installs, with their hashes.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --upgrade \
	  -o ci/requirements.txt pyproject.toml ci/requirements.in

bench: .venv/.bench  ## Print CPU, time and memory of ingest and analysis on large tiled traces, beside other tools, and the report's speed in a browser.
	$(BIN)/python -m benchmarks.run

pictures: .venv/.dev  ## Make the screenshots of docs/report.md again.
	$(BIN)/python -m benchmarks.pictures

clean:
	rm -rf .venv demo dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/.run: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.dev: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ .venv/.run

.venv/.fuzz: .venv/.dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[fuzz]" || echo "atheris cannot be installed here"
	@touch $@

.venv/.bench: .venv/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	@touch $@
