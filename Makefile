# Everything runs in .venv, which is made once and refreshed when the dependencies change.

PYTHON ?= python3
WORKERS ?= 2
# The full tier waits much, for sessions that end, for Java and for Spark.
FULL_WORKERS ?= 3
ARGS ?=

VENV := .venv
STAMP := $(VENV)/.installed
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help venv run demo quick test test-full soak bench bench-client bench-cluster bench-log bench-spark lint format docs clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Headwater needs Python 3.11 or newer: name one with 'make PYTHON=/path/to/python3'." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

venv: $(STAMP)  ## Make or refresh the virtual environment

run: $(STAMP)  ## Set everything up and serve: one broker on 127.0.0.1:9092, data in ./headwater-data
	$(BIN)/headwater serve --broker-id 0 --set metrics.listen=127.0.0.1:9404 $(ARGS)

demo: $(STAMP)  ## A broker, a shop's orders, three pipelines on Spark, a chart, all checked: 3 minutes
	$(BIN)/python -m headwater.pipeline.demo $(ARGS)

quick: lint  ## Lint, types, and the tests that need no socket, Java or Spark: the loop after each edit
	HEADWATER_TEST_TIER=quick $(BIN)/pytest -n $(WORKERS) --dist worksteal -q $(ARGS)

test: lint  ## Lint, types and every test in its small form
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q --durations=10 $(ARGS)

test-full: lint  ## Lint, types and every test with all rounds and matrices
	HEADWATER_TEST_TIER=full $(BIN)/pytest -n $(FULL_WORKERS) --dist worksteal -q --durations=10 $(ARGS)

soak: $(STAMP)  ## Random campaigns against log, broker and clusters, as long as wanted: make soak ARGS=...
	$(BIN)/python -m bench.soak $(ARGS)

bench: $(STAMP)  ## Measure the broker against Apache Kafka: make bench ARGS=--quick takes 5 minutes
	$(BIN)/python -m bench.broker $(ARGS)

bench-client: $(STAMP)  ## Measure the client against other Python clients: ARGS=--quick for a short run
	$(BIN)/python -m bench.client $(ARGS)

bench-cluster: $(STAMP)  ## Measure a cluster against one of Apache Kafka: ARGS=--quick for a short run
	$(BIN)/python -m bench.cluster $(ARGS)

bench-spark: $(STAMP)  ## Measure our Spark connector against Spark's own for Kafka: ARGS=--quick for a short run
	$(BIN)/python -m bench.spark $(ARGS)

bench-log: $(STAMP)  ## Measure the partition log against bare system calls
	$(BIN)/python -m bench.log $(ARGS)

lint: $(STAMP)  ## Ruff's rules and format, and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict

format: $(STAMP)  ## Let ruff put the code into its format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)  ## Write the reference pages, and the types of settings, that come from tables in the source
	$(BIN)/python -m tools.settings_reference > docs/settings.md
	$(BIN)/python -m tools.api_reference > docs/apis.md
	$(BIN)/python -m tools.client_reference settings > docs/client-settings.md
	$(BIN)/python -m tools.client_reference errors > docs/client-errors.md
	$(BIN)/python -m tools.typed_settings
	$(BIN)/python -m tools.pipeline_reference > docs/pipeline-reference.md
	$(BIN)/python -m tools.spark_reference docs/spark.md
	$(BIN)/python -m tools.file_map

clean:  ## Remove the virtual environment, caches and build output
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
