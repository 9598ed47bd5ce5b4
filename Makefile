# One entry point for people and CI. `make build ARGS="--select +fivetran_history"` passes options on; see `make help`.

.DEFAULT_GOAL := help
.PHONY: help setup build cluster cluster-stop reachable check test test-all test-cluster test-matrix torture iceberg lint fix docs bench cases proto lock clean

# The Python that makes the environment; everything else runs in it, through $(RUN).
PYTHON ?= python3
RUN := scripts/run
ARGS ?=
# The target of dbt, landing and the examples: local, or after `make cluster` also cluster or connect (docs/cluster.md).
TARGET ?= local
export DBT_HISTORY_TARGET := $(TARGET)
ICEBERG_EXAMPLES := +fivetran_history +fivetran_current +fivetran_as_of +path:models/examples/atoti
CASES := tests/conformance/cases
SHARED_CASES := ../shared/conformance

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## Set up the checkout: environment, Java, jars, settings
	@$(PYTHON) scripts/setup.py

build: reachable ## Build and test the examples and print a summary (ARGS="--select …" TARGET=cluster)
	@PYTHONPATH=. $(RUN) python scripts/build.py $(ARGS)

cluster: setup ## Start a small Spark cluster on this machine (ARGS="--workers 2"); then make build TARGET=cluster
	@$(PYTHON) scripts/cluster.py start $(ARGS)

cluster-stop: ## Stop the cluster and keep its tables
	@$(PYTHON) scripts/cluster.py stop

# Without a cluster Spark's client would retry for minutes.
reachable: setup
	@test $(TARGET) = local || test -n "$$DBT_HISTORY_THRIFT_HOST$$DBT_HISTORY_CONNECT" \
		|| $(PYTHON) scripts/cluster.py status > /dev/null || { echo "no cluster is running; start one with: make cluster" >&2; exit 1; }

# Each process has its own Spark; the tests of a file run in one process.
TEST_PROCESSES ?= 2

# make test runs a part of the tests that are repeated with other seeds, cases and interruptions.
PART := -m "not thorough"

test: lint ## Lint, then run the tests of every area and rule (ARGS="-k …" TEST_PROCESSES=0: in one process)
	@TEST_PROCESSES=$(TEST_PROCESSES) $(RUN) scripts/test $(PART) $(ARGS)

test-all: export ALL_VARIANTS := 1
test-all: ## Run the same with every variant, kill and random stream
	@$(MAKE) --no-print-directory test PART=

check: lint ## Lint, then run the tests without Spark: the rules in plain Python, the text of SQL and messages
	@$(RUN) pytest $(PART) -n $(TEST_PROCESSES) tests/oracle tests/render $(ARGS)

iceberg: setup ## Build the examples with version tables on Iceberg (ARGS="--select …")
	@DBT_HISTORY_FORMAT=iceberg $(RUN) dbt build --target iceberg --indirect-selection cautious \
		--select $(ICEBERG_EXAMPLES) $(ARGS)

# These cases of mirrors and events only, because each statement needs a run of dbt there; empty lists select all.
CASES_THERE := PC2 PP1 PD4 ED1 E-P1
CASES_BY_CONNECT := PC2 ED1
MIRRORS := $(addprefix tests/conformance/test_,hx_mirror.py events.py hx_readers.py)
# Over thrift, test_cluster.py runs this test.
RULES_BY_CONNECT := tests/conformance/test_history_batch.py::test_every_batch_replayed_changes_nothing

test-cluster: setup ## Run conformance cases and connection failures on a local cluster
	@CASES="$(CASES_THERE)" $(RUN) pytest --on-cluster thrift $(MIRRORS) tests/functional/test_cluster.py $(ARGS)
	@CASES="$(CASES_BY_CONNECT)" $(RUN) pytest --on-cluster connect $(RULES_BY_CONNECT) $(MIRRORS) $(ARGS)

test-matrix: setup ## Build the consumer project with the oldest and the newest dbt, parse it with dbt 2 (ARGS=oldest)
	@$(PYTHON) scripts/matrix.py $(ARGS)

torture: setup ## Interrupt writers, let processes race, compare with MariaDB (ARGS="--kills 200 --races 100 --comparisons 1000")
	@PYTHONPATH=. $(RUN) python -m tests.torture $(ARGS)

lint: setup ## Check SQL, Python and YAML; no Spark
	@$(RUN) scripts/lint

fix: setup ## Apply the fixes of the linters
	@$(RUN) scripts/lint --fix

docs: setup ## Build the site: guides, dbt's documentation, charts (builds the examples if needed)
	@test -n "$$(ls .state/warehouse 2>/dev/null)" || $(MAKE) --no-print-directory build
	@PYTHONPATH=. $(RUN) python -m scripts.site.build

bench: setup ## Run the benchmarks and write the reports
	@$(RUN) python bench/run.py $(ARGS)
	@$(RUN) python bench/mirrors.py $(MIRRORS_ARGS)
	@$(RUN) python bench/time_travel.py $(TRAVEL_ARGS)
	@$(RUN) python bench/feature_states.py $(FEATURES_ARGS)
	@$(RUN) python bench/landing.py $(LANDING_ARGS)
	@$(RUN) python bench/destination.py $(DESTINATION_ARGS)
	@$(RUN) python bench/engines.py $(ENGINES_ARGS)
	@$(RUN) python bench/growth.py $(GROWTH_ARGS)
	@$(RUN) python bench/fixed_cost.py $(FIXED_COST_ARGS)
	@PYTHONPATH=. $(RUN) python bench/explorer.py $(EXPLORER_ARGS)

cases: ## Update the copy of the conformance cases
	@test -d $(SHARED_CASES) || { echo "cases: $(SHARED_CASES) does not exist" >&2; exit 1; }
	@rm -rf $(CASES) && mkdir -p $(CASES) && cp -R $(SHARED_CASES)/. $(CASES) && chmod -R u+w $(CASES)
	@find $(CASES) -type f | wc -l | xargs -I{} echo "{} files in $(CASES)"

proto: setup ## Generate the Python of the gRPC messages from the proto file
	@$(RUN) python scripts/proto.py

lock: ## Resolve the locks after a change in pyproject.toml (ARGS=--upgrade: newest versions)
	@$(PYTHON) scripts/setup.py --lock $(ARGS)

clean: ## Remove all tables and build output; keep the environment
	@$(PYTHON) scripts/cluster.py stop > /dev/null
	@rm -rf .state/warehouse .state/metastore .state/cluster .state/target .state/logs dbt_packages
	@find . -name __pycache__ -type d -not -path './.venv/*' -not -path './.state/*' -prune -exec rm -rf {} +
