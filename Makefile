# Everything runs in .venv, which is made once and refreshed when the dependencies change.

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=

VENV := .venv
STAMP := $(VENV)/.installed
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help venv run test test-full soak bench bench-log lint format docs clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Headwater needs Python 3.11 or newer: name one with 'make PYTHON=/path/to/python3'." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

venv: $(STAMP)  ## Make or refresh the virtual environment

run: $(STAMP)  ## Set everything up and show what the command can do
	@$(BIN)/headwater --help
	@echo "This release holds the storage engine and its tools; the broker command arrives with the next release."

test: lint  ## Lint, types and every test in its small form
	$(BIN)/pytest -n $(WORKERS) -q --durations=10 $(ARGS)

test-full: lint  ## Lint, types and every test with all rounds and matrices
	HEADWATER_TEST_TIER=full $(BIN)/pytest -n $(WORKERS) -q --durations=10 $(ARGS)

soak: $(STAMP)  ## Random campaigns against the log, as long as wanted: make soak ARGS=...
	$(BIN)/python -m bench.soak $(ARGS)

bench: bench-log  ## Every benchmark

bench-log: $(STAMP)  ## Measure the partition log against bare system calls
	$(BIN)/python -m bench.log $(ARGS)

lint: $(STAMP)  ## Ruff's rules and format, and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict

format: $(STAMP)  ## Let ruff put the code into its format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)  ## Write the reference pages that come from tables in the source
	$(BIN)/python -m headwater.cli.reference > docs/settings.md

clean:  ## Remove the virtual environment, caches and build output
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
