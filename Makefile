# The only commands anyone needs. Each makes the environment it runs in; `make PYTHON=python3.12 test` chooses the interpreter.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PEER := .venv-integration
# A stamp, not the folder: a folder's time changes with every file written into it.
STAMP := $(VENV)/.stamp
PEER_STAMP := $(PEER)/.stamp

HUDI_BUNDLE := hudi-spark3.5-bundle_2.12
HUDI_VERSION := 1.2.0
JARS := build/jars
BUNDLE_JAR := $(JARS)/$(HUDI_BUNDLE)-$(HUDI_VERSION).jar
JUDGES := HOODIE_PEER_PYTHON=$(PEER)/bin/python HOODIE_BUNDLE_JAR=$(BUNDLE_JAR)

# Empty until there are tests marked `spark`: pytest takes "nothing selected" for a failure.
SPARK_TESTS := $(shell grep -rl 'mark\.spark' tests --include='*.py')

.DEFAULT_GOAL := help
.PHONY: help demo test integration bench soak lint format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## write, change and read back a table of New York flights
	$(VENV)/bin/python demo/flights.py

# Spark's tests apart and in one process: they share one session, which keeps both of its cores busy by itself. (xdist's
# groups would do it in one run, but xdist 3.8 ignores them without a word under pytest 9.2.)
test: $(STAMP) ## unit, contract and Spark tests
	$(VENV)/bin/python -m pytest tests -m 'not spark' -n 2
	$(if $(SPARK_TESTS),$(VENV)/bin/python -m pytest tests -m spark)

integration: $(STAMP) $(PEER_STAMP) $(BUNDLE_JAR) ## compare with Apache Hudi on Spark and with hudi-rs (needs mvn once)
	$(JUDGES) $(VENV)/bin/python -m pytest integration -m integration

bench: $(STAMP) ## measure against plain pyarrow and plain Spark on the same data
	$(VENV)/bin/python -m benchmarks.run

soak: $(STAMP) $(PEER_STAMP) $(BUNDLE_JAR) ## long runs: histories against the model and Apache Hudi, every crash, damaged tables, fuzzers
	HOODIE_SOAK=1 $(VENV)/bin/python -m pytest tests/test_history.py tests/crash tests/corruption/test_whole_tables.py
	HOODIE_SOAK=1 $(JUDGES) $(VENV)/bin/python -m pytest integration/test_random_histories.py integration/test_fuzz_decoders.py -m integration

lint: $(STAMP) ## style, formatting and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(STAMP) ## rewrite the sources in the project's format
	$(VENV)/bin/ruff check --fix-only --quiet .
	$(VENV)/bin/ruff format .

clean: ## remove everything that the other targets made
	rm -rf $(VENV) $(PEER) build dist spark-warehouse metastore_db derby.log
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(PEER_STAMP): pyproject.toml
	test -x $(PEER)/bin/python || $(PYTHON) -m venv $(PEER)
	$(PEER)/bin/python -m pip install --quiet --disable-pip-version-check pyspark==3.5.9 hudi==0.5.0 --editable .
	touch $@

# Kept for ever once it is there: a released jar does not change.
$(BUNDLE_JAR):
	mvn -q -B dependency:copy -Dartifact=org.apache.hudi:$(HUDI_BUNDLE):$(HUDI_VERSION) -DoutputDirectory=$(JARS)
