# The only commands anyone needs. Each makes the environment it runs in; `make PYTHON=python3.12 test` chooses the interpreter.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PEER := .venv-integration
# A stamp, not the folder: a folder's time changes with every file written into it.
STAMP := $(VENV)/.stamp
PEER_STAMP := $(PEER)/.stamp
# Spark 3.5 and Daft are in the environment of Apache Hudi, the newest Spark in the first one.
SPARK_4.0 := .venv-spark4.0
OTHER_SPARKS := $(SPARK_4.0) .venv-spark4.1 .venv-spark4.2

# The lowest versions that pyproject.toml declares, and the newest Python that is found here (none: its suite is left out).
LOWEST := .venv-lowest
NEWEST := .venv-newest
NEWEST_PYTHON ?= $(shell for v in 15 14 13 12; do for p in $$(command -v python3.$$v) $$HOME/.pyenv/versions/3.$$v.*/bin/python3.$$v; do \
	"$$p" -c '' 2>/dev/null && echo "$$p" && exit; done; done)
# What depends most on the versions beneath: bytes, filters, reads, writes and the examples of the pages.
VERSION_TESTS := tests/engine tests/filegroup tests/format tests/read tests/write \
	tests/test_docs.py tests/test_golden_views.py tests/test_incremental_ranges.py tests/test_user_mistakes.py

# Those that need servers, and not Apache Hudi: they mostly wait.
ON_SERVERS := integration/test_contracts_on_servers.py integration/test_suites_on_servers.py \
	integration/test_crashes_on_servers.py integration/test_operations_on_servers.py integration/test_failing_servers.py \
	integration/test_kv_on_servers.py
SERVER_TESTS := $(ON_SERVERS) integration/test_many_writers.py integration/test_locks_in_hive.py

HUDI_BUNDLE := hudi-spark3.5-bundle_2.12
HUDI_VERSION := 1.2.0
JARS := build/jars
BUNDLE_JAR := $(JARS)/$(HUDI_BUNDLE)-$(HUDI_VERSION).jar
# Peers of the benchmark: Delta and Iceberg on the newest Spark that both have jars for, and what runs without Spark.
BENCH_SPARK := .venv-bench-spark
BENCH_EMBEDDED := .venv-bench-embedded
ICEBERG_RUNTIME := iceberg-spark-runtime-4.1_2.13
ICEBERG_VERSION := 1.11.0
ICEBERG_JAR := $(JARS)/$(ICEBERG_RUNTIME)-$(ICEBERG_VERSION).jar
DELTA_JARS := $(JARS)/delta/.stamp
# What HDFS is made of, for the tests that need a real one.
HDFS_JARS := $(JARS)/hdfs/.stamp
# Delta Lake and Apache Iceberg for Hudi's Spark, which read what we publish.
LAKE_JARS := $(JARS)/lakes/.stamp
# A broker of Kafka.
KAFKA_JARS := $(JARS)/kafka/.stamp
# Kafka Connect with Debezium, which reads the logs of databases into its topics.
DEBEZIUM_JARS := $(JARS)/debezium/.stamp
# HBase, which judges our HFiles.
HBASE_JARS := $(JARS)/hbase/.stamp
# HBase with its Thrift server, which has the keys of tables.
HBASE_SERVER_JARS := $(JARS)/hbase-server/.stamp
# An S3 server that holds the conditions of puts, built once by Go where there is one.
GO ?= $(shell command -v go || command -v /usr/local/go/bin/go)
VERSITYGW := build/bin/versitygw
VERSITYGW_VERSION := 1.8.0
# An emulator of Azure's blob storage, for `make soak`, where there is Node.js.
AZURITE := build/azurite/node_modules/azurite/dist/src/blob/main.js
AZURITE_VERSION := 3.35.0
# One of Google Cloud Storage, for `make soak`, where there is Go.
FAKE_GCS := build/bin/fake-gcs-server
FAKE_GCS_VERSION := 1.56.1
BENCH_PEERS := $(PEER_STAMP) $(BENCH_SPARK)/.stamp $(BENCH_EMBEDDED)/.stamp $(BUNDLE_JAR) $(ICEBERG_JAR) $(DELTA_JARS)
JUDGES := HOODIE_PEER_PYTHON=$(PEER)/bin/python HOODIE_BUNDLE_JAR=$(BUNDLE_JAR) HOODIE_HBASE_JARS=$(JARS)/hbase
# Of the variants of long tests and comparisons one in so many; `make integration EVERY=1` runs all.
EVERY ?= 12
SAMPLE := HOODIE_EVERY=$(EVERY)
SERVERS := HOODIE_VERSITYGW=$(VERSITYGW) HOODIE_HDFS_JARS=$(JARS)/hdfs HOODIE_KAFKA_JARS=$(JARS)/kafka HOODIE_DEBEZIUM_JARS=$(JARS)/debezium HOODIE_HBASE_SERVER_JARS=$(JARS)/hbase-server HOODIE_AZURITE=$(AZURITE) HOODIE_GCS=$(FAKE_GCS)

# Spark and the tests start hundreds of Python processes. Each would compile the sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test environments integration compare alone servers bench soak docs release lint format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## write, change and read back a table of New York flights
	$(VENV)/bin/python demo/flights.py

# Spark's tests apart, a file after the other: each process has a session of its own, which its files share.
test: $(STAMP) ## unit, contract and Spark tests, those marked `long` left out
	$(VENV)/bin/python -m pytest tests -m 'not spark and not long' -n 2
	$(VENV)/bin/python -m pytest tests/spark -m 'spark and not long' -n 2 --dist loadfile

# All that `make integration` installs: beside something else, as that is mostly waiting.
environments: $(STAMP) $(PEER_STAMP) $(BUNDLE_JAR) $(LAKE_JARS) $(HBASE_JARS) $(HBASE_SERVER_JARS) $(HDFS_JARS) $(KAFKA_JARS) $(DEBEZIUM_JARS) $(VERSITYGW) $(SPARK_4.0)/.stamp $(LOWEST)/.stamp $(if $(NEWEST_PYTHON),$(NEWEST)/.stamp)

integration: environments ## a sample of the long tests; compare with Apache Hudi, hudi-rs and Daft; Spark 3.5 and 4.0 (needs mvn once)
	$(MAKE) --jobs=3 compare alone servers

# Side by side: what needs servers, or a JVM as the judge, waits for them for much of its time.
compare:
	$(SAMPLE) $(JUDGES) $(SERVERS) $(VENV)/bin/python -m pytest integration -m integration $(SERVER_TESTS:%=--ignore=%) -n 2 --dist loadfile --no-loadscope-reorder --durations=30

alone:
	$(SAMPLE) $(VENV)/bin/python -m pytest tests -m long -n 2 --dist loadfile --no-loadscope-reorder --durations=60
	$(PEER)/bin/python -m pytest tests/spark -m smoke
	$(SPARK_4.0)/bin/python -m pytest tests/spark -m smoke
	$(SAMPLE) $(LOWEST)/bin/python -m pytest $(VERSION_TESTS) -m 'not spark and not long' -n 2
	$(if $(NEWEST_PYTHON),$(SAMPLE) $(NEWEST)/bin/python -m pytest $(VERSION_TESTS) -m 'not spark and not long' -n 2,@echo 'no Python newer than 3.11 here: its suite is left out')

servers:
	$(SAMPLE) $(SERVERS) $(VENV)/bin/python -m pytest $(SERVER_TESTS) -m integration

# `make bench SYSTEMS="spark4/spark spark4/hoodie-*"` measures some, `ARGS=--full` everything at three sizes (hours); `-m benchmarks.run --help`.
bench: $(STAMP) $(BENCH_PEERS) ## measure beside plain pyarrow, plain Spark, Hudi, Delta, Iceberg, polars, delta-rs
	$(VENV)/bin/python -m benchmarks.run --jars $(JARS) --embedded-python $(BENCH_EMBEDDED)/bin/python \
		--spark4-python $(BENCH_SPARK)/bin/python --spark3-python $(PEER)/bin/python $(if $(SYSTEMS),--only $(SYSTEMS)) $(ARGS)

soak: $(STAMP) $(PEER_STAMP) $(BUNDLE_JAR) $(HDFS_JARS) $(KAFKA_JARS) $(DEBEZIUM_JARS) $(VERSITYGW) $(AZURITE) $(FAKE_GCS) $(OTHER_SPARKS:%=%/.stamp) ## long runs: histories, every crash, damaged tables, fuzzers, many writers, every Spark
	$(MAKE) integration EVERY=1
	HOODIE_SOAK=1 $(VENV)/bin/python -m pytest tests/test_history.py tests/write/test_bucket_history.py tests/test_consumer_histories.py tests/test_schedules.py \
		tests/crash tests/corruption/test_whole_tables.py
	HOODIE_SOAK=1 HOODIE_TABLE_VERSION=9 $(VENV)/bin/python -m pytest tests/test_history.py tests/write/test_bucket_history.py tests/test_schedules.py tests/crash/test_every_step.py
	HOODIE_SOAK=1 $(JUDGES) $(SERVERS) $(VENV)/bin/python -m pytest $(ON_SERVERS) integration/test_*_with_hudi.py integration/test_version_9_in_turns.py integration/test_random_histories.py integration/test_fuzz_decoders.py integration/test_cluster.py integration/test_word_count.py integration/test_many_writers.py integration/test_kafka.py integration/test_kafka_on_spark.py integration/test_ingest_postgres.py integration/test_debezium.py -m integration
	for venv in $(VENV) $(PEER) $(OTHER_SPARKS); do HOODIE_SOAK=1 $$venv/bin/python -m pytest tests/spark -m spark || exit 1; done

docs: $(STAMP) ## the site of the pages, in build/site
	$(VENV)/bin/python -m docs.make_site

release: $(STAMP) ## build what is released, and try it in clean environments
	$(VENV)/bin/python -m release.check

lint: $(STAMP) ## style, formatting and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(STAMP) ## rewrite the sources in the project's format
	$(VENV)/bin/ruff check --fix-only --quiet .
	$(VENV)/bin/ruff format .

clean: ## remove everything that the other targets made
	rm -rf $(VENV) $(PEER) $(LOWEST) $(NEWEST) $(OTHER_SPARKS) $(BENCH_SPARK) $(BENCH_EMBEDDED) build dist spark-warehouse metastore_db derby.log
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(PEER_STAMP): pyproject.toml
	test -x $(PEER)/bin/python || $(PYTHON) -m venv $(PEER)
	$(PEER)/bin/python -m pip install --quiet --disable-pip-version-check pyspark==3.5.9 hudi==0.5.0 daft==0.7.26 'dbt-core==1.10.*' 'dbt-spark==1.9.*' --editable '.[spark,test]'
	touch $@

.venv-spark%/.stamp: pyproject.toml
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check 'pyspark==$*.*' --editable '.[connect,test]'
	touch $@

$(LOWEST)/.stamp: pyproject.toml
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -c "import tomllib; print(*(d.replace('>=', '==') for d in tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']), sep='\n')" > $(@D)/lowest.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(@D)/lowest.txt --editable '.[pybloom,test]'
	touch $@

$(NEWEST)/.stamp: pyproject.toml
	test -x $(@D)/bin/python || $(NEWEST_PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[pybloom,test]'
	touch $@

$(BENCH_SPARK)/.stamp: pyproject.toml
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check pyspark==4.1.1 delta-spark==4.3.1 --editable '.[spark]'
	touch $@

# No hoodie in it: it is measured in the first environment.
$(BENCH_EMBEDDED)/.stamp: pyproject.toml
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check numpy pyarrow polars==2.1.0 deltalake==1.6.6 \
		'pyiceberg[sql-sqlite]==0.12.0' pyiceberg-core==0.11.0 rocksdict==0.3.29 lmdb==3.0.0 slatedb==0.17.0
	touch $@

# Jars are kept for ever once they are there: a released one does not change.
$(ICEBERG_JAR):
	mvn -q -B dependency:copy -Dartifact=org.apache.iceberg:$(ICEBERG_RUNTIME):$(ICEBERG_VERSION) -DoutputDirectory=$(JARS)

$(DELTA_JARS): benchmarks/delta-jars.xml
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(@D)) \
		-DincludeGroupIds=io.delta,io.unitycatalog,org.locationtech.jts
	touch $@

$(LAKE_JARS): integration/lake-jars.xml
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(@D)) \
		-DincludeGroupIds=io.delta,org.apache.iceberg
	touch $@

$(HDFS_JARS): integration/hdfs-jars.xml
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(@D))
	touch $@

$(KAFKA_JARS): integration/kafka-jars.xml
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(@D))
	touch $@

$(DEBEZIUM_JARS): integration/debezium-jars.xml
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(@D))
	touch $@

# A hundred megabytes, for one file of tests, which are left out without them.
$(HBASE_SERVER_JARS): integration/hbase-server-jars.xml
	mkdir -p $(@D)
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(@D)) || rm -f $(@D)/*.jar
	touch $@

$(HBASE_JARS): integration/hbase-jars.xml
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(@D))
	touch $@

ifneq ($(GO),)
$(VERSITYGW):
	GOBIN=$(abspath $(@D)) GOFLAGS=-p=1 $(GO) install github.com/versity/versitygw/cmd/versitygw@v$(VERSITYGW_VERSION) \
		|| echo 'versitygw cannot be built here: the tests on a real S3 server are left out'

$(FAKE_GCS):
	GOBIN=$(abspath $(@D)) GOFLAGS=-p=1 $(GO) install github.com/fsouza/fake-gcs-server@v$(FAKE_GCS_VERSION) \
		|| echo 'fake-gcs-server cannot be built here: its tests are left out'
else
.PHONY: $(VERSITYGW) $(FAKE_GCS)
$(VERSITYGW) $(FAKE_GCS):
	@echo 'no Go here: the tests on $(@F) are left out'
endif

$(AZURITE):
	npm install --silent --no-fund --no-audit --prefix build/azurite azurite@$(AZURITE_VERSION) \
		|| echo 'Azurite cannot be installed here: its tests are left out'

$(BUNDLE_JAR):
	mvn -q -B dependency:copy -Dartifact=org.apache.hudi:$(HUDI_BUNDLE):$(HUDI_VERSION) -DoutputDirectory=$(JARS)
