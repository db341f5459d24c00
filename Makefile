# Everything runs in .venv, which grows with what is asked of it: serving needs little, Spark more, the tests all.

PYTHON ?= python3
WORKERS ?= 2
# The full tier waits much, for sessions that end, for Java and for Spark.
FULL_WORKERS ?= 3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# What the venv has. A larger part has the smaller ones in it, so installing it touches their stamps too.
SERVING := $(VENV)/.serving
SPARK := $(VENV)/.spark
ALL := $(VENV)/.all
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help venv spark run demo quick test test-full soak bench bench-audit bench-client bench-cluster bench-delay bench-log bench-retry bench-spark lint format docs clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Headwater needs Python 3.11 or newer: name one with 'make PYTHON=/path/to/python3'." >&2; exit 1; }
	@echo "Making a virtual environment in $(VENV)..."
	@$(PYTHON) -m venv $(VENV)

$(SERVING): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Headwater into $(VENV)..."
	@$(INSTALL) -e .
	@touch $@

$(SPARK): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Headwater and Spark into $(VENV): about a gigabyte..."
	@$(INSTALL) -e '.[demo]'
	@touch $(SERVING) $@

$(ALL): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Headwater and all that its tests need into $(VENV): a good gigabyte..."
	@$(INSTALL) -e '.[dev]'
	@touch $(SERVING) $(SPARK) $@

venv: $(ALL)  ## Make or refresh the virtual environment, with all that the tests need

spark: $(SPARK)  ## Add what the Spark connector and the pipelines need to the virtual environment

run: $(SERVING)  ## Serve: one broker on 127.0.0.1:9092, metrics on 9404, data in ./headwater-data
	@$(BIN)/headwater serve --broker-id 0 --set metrics.listen=127.0.0.1:9404 $(ARGS)

demo: $(SPARK)  ## A broker, a shop's orders, three pipelines on Spark, a chart, all checked: 3 minutes
	@$(BIN)/headwater demo $(ARGS)

quick: lint  ## Lint, types, and the tests that need no socket, Java or Spark: the loop after each edit
	HEADWATER_TEST_TIER=quick $(BIN)/pytest -n $(WORKERS) --dist worksteal -q $(ARGS)

test: lint  ## Lint, types and every test in its small form
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q --durations=10 $(ARGS)

test-full: lint  ## Lint, types and every test with all rounds and matrices
	HEADWATER_TEST_TIER=full $(BIN)/pytest -n $(FULL_WORKERS) --dist worksteal -q --durations=10 $(ARGS)

soak: $(ALL)  ## Random campaigns against log, broker and clusters, as long as wanted: make soak ARGS=...
	$(BIN)/python -m bench.soak $(ARGS)

bench: $(ALL)  ## Measure the broker against Apache Kafka: make bench ARGS=--quick takes 5 minutes
	$(BIN)/python -m bench.broker $(ARGS)

bench-audit: $(ALL)  ## Measure what audit, ids and traces cost: ARGS=--quick for a short run
	$(BIN)/python -m bench.audit $(ARGS)

bench-client: $(ALL)  ## Measure the client against other Python clients: ARGS=--quick for a short run
	$(BIN)/python -m bench.client $(ARGS)

bench-cluster: $(ALL)  ## Measure a cluster against one of Apache Kafka: ARGS=--quick for a short run
	$(BIN)/python -m bench.cluster $(ARGS)

bench-delay: $(ALL)  ## Measure how late delayed messages are, and what they cost: ARGS=--quick for a short run
	$(BIN)/python -m bench.delay $(ARGS)

bench-retry: $(ALL)  ## Measure workers beside plain consumers, failures and redrives: ARGS=--quick for a short run
	$(BIN)/python -m bench.retry $(ARGS)

bench-spark: $(ALL)  ## Measure our Spark connector against Spark's own for Kafka: ARGS=--quick for a short run
	$(BIN)/python -m bench.spark $(ARGS)

bench-log: $(ALL)  ## Measure the partition log against bare system calls
	$(BIN)/python -m bench.log $(ARGS)

lint: $(ALL)  ## Ruff's rules and format, and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict

format: $(ALL)  ## Let ruff put the code into its format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(ALL)  ## Write the reference pages, and the types of settings, that come from tables in the source
	$(BIN)/python -m tools.settings_reference > docs/settings.md
	$(BIN)/python -m tools.api_reference > docs/apis.md
	$(BIN)/python -m tools.cli_reference > docs/cli.md
	$(BIN)/python -m tools.client_reference settings > docs/client-settings.md
	$(BIN)/python -m tools.client_reference errors > docs/client-errors.md
	$(BIN)/python -m tools.typed_settings
	$(BIN)/python -m tools.pipeline_reference > docs/pipeline-reference.md
	$(BIN)/python -m tools.spark_reference docs/spark.md
	$(BIN)/python -m tools.file_map

clean:  ## Remove the virtual environment, caches and build output
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
