# Everything works on a fresh machine with Python 3.11 or newer and make.
# The first Python that runs and is new enough; a version manager's stand-in may be there and not run.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
LOWEST_TESTS := tests/house/test_api.py tests/model/test_store.py tests/model/test_store_versions.py tests/cli/test_cli.py tests/base/test_frames.py \
  tests/export/test_export.py tests/render/test_outputs.py tests/house/test_wheel.py tests/report/test_report_charts.py tests/report/test_report_payload.py \
  tests/analysis/test_findings.py
DEMO_TRACE := tests/fixtures/kineto/dataloader.slow.pt.trace.json.gz

.PHONY: demo test test-lowest lint scripts generated format fuzz lock plotly bench pictures clean

demo: .venv/.run  ## Set up, then write demo/report.html from a fixture.
	@$(BIN)/traceanalyzer report $(DEMO_TRACE) -o demo/report.html
	@echo "open demo/report.html in a browser"

test: lint  ## Set up, then run linters, type checks and the whole suite.
	@$(BIN)/python -m compileall -q traceanalyzer  # hundreds of tests start the command anew
	$(BIN)/python -m pytest -n auto --dist worksteal

test-lowest: .venv-lowest/.made  ## The suite's essentials with the lowest versions of packages that pyproject.toml allows, in an environment of its own.
	.venv-lowest/bin/python -m pytest -n auto --dist worksteal -m "not corpus" $(LOWEST_TESTS) \
	  --deselect tests/cli/test_cli.py::test_pandas_is_not_loaded_without_need  # older Arrows import it whoever asks

scripts:  ## Check the page's scripts with ESLint and node's test runner. Needs node 20 or newer and npm.
	@cd ci/scripts && npm ci --silent --ignore-scripts --no-audit --no-fund
	node ci/scripts/node_modules/eslint/bin/eslint.js --config ci/scripts/eslint.config.mjs templates/*.js ci/*/*.mjs ci/*/*.cjs tests/scripts
	node --test tests/scripts/*.test.mjs

plotly:  ## Build templates/vendored/plotly.min.js anew from what ci/plotly/package-lock.json names. Needs node and npm.
	@cd ci/plotly && npm ci --silent --ignore-scripts --no-audit --no-fund && node build.mjs

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

generated: .venv/.dev  ## Renew what is made of code and held by tests: schemas, lists and tables in docs, golden results.
	$(BIN)/python -m tests.generated

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
	rm -rf .venv .venv-lowest ci/*/node_modules demo dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

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

.venv-lowest/.made: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }
	$(PYTHON) -m venv --clear .venv-lowest
	@.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --editable ".[dev]"
	@touch $@

.venv/.bench: .venv/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	@touch $@
