# One entry point for people and CI. `make build ARGS="--select fivetran"` passes options on; see `make help`.

.DEFAULT_GOAL := help
.PHONY: help setup build cluster cluster-stop reachable check test test-all test-cluster test-matrix iceberg lint fix docs bench cases proto lock clean

# The Python that makes the environment; everything else runs in it, through $(RUN).
PYTHON ?= python3
RUN := scripts/run
ARGS ?=
# Where dbt and what is beside it run: local, or after `make cluster` cluster or connect (docs/cluster.md).
TARGET ?= local
export DBT_HISTORY_TARGET := $(TARGET)
OUTPUT := .state/target
WAREHOUSE := $(if $(filter local,$(TARGET)),.state/warehouse,.state/cluster/warehouse)
LANDED := $(WAREHOUSE)/.landing_example
PLAYED := $(WAREHOUSE)/.days
ICEBERG_EXAMPLES := +fivetran_history +fivetran_current +fivetran_as_of +path:models/examples/atoti
CASES := tests/conformance/cases
SHARED_CASES := ../shared/conformance

help: ## List what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## Make the checkout ready: environment, Java, jars, settings
	@$(PYTHON) scripts/setup.py

build: setup $(LANDED) $(PLAYED) ## Run dbt build on everything and print a summary (ARGS="--select …" TARGET=cluster)
	@rm -f $(OUTPUT)/run_results.json
	@status=0; $(RUN) dbt build $(ARGS) || status=$$?; $(RUN) dbt-history summary; \
		test $$status -eq 0 || $(RUN) dbt-history failures; exit $$status

cluster: setup ## Start a small Spark cluster on this machine (ARGS="--workers 2"); then make build TARGET=cluster
	@$(PYTHON) scripts/cluster.py start $(ARGS)

cluster-stop: ## Stop it; its tables stay
	@$(PYTHON) scripts/cluster.py stop

# Spark's client would knock for minutes at a door that nobody opens.
reachable: setup
	@test $(TARGET) = local || test -n "$$DBT_HISTORY_THRIFT_HOST$$DBT_HISTORY_CONNECT" \
		|| $(PYTHON) scripts/cluster.py status > /dev/null || { echo "there is no cluster; start it: make cluster" >&2; exit 1; }

# Real request files of the example, landed before dbt runs; again only if the rows or the scripts change.
$(LANDED): scripts/landing_example.py scripts/request_files.py $(wildcard seeds/examples/fivetran/*.csv) | reachable
	@rm -rf .state/landing_example && PYTHONPATH=. $(RUN) python scripts/landing_example.py .state/landing_example
	@$(RUN) dbt-history land .state/landing_example --schema dbt_history --quiet
	@touch $@

# The examples whose main tables change day by day: their users' statements and a run of dbt a day.
$(PLAYED): scripts/play_days.py $(wildcard scripts/days/*/*.sql) | reachable
	@PYTHONPATH=. $(RUN) python scripts/play_days.py
	@touch $@

# Each process has a Spark of its own; a file's tests stay in one.
TEST_PROCESSES ?= 2

# Of what is played over and over with other seeds, cases and moments, make test takes a part.
PART := -m "not thorough"

test: lint ## Lint, then run the tests: every area and rule (ARGS="-k …" TEST_PROCESSES=0: in one process)
	@$(RUN) pytest $(PART) -n $(TEST_PROCESSES) --dist loadfile $(ARGS)
	@$(if $(findstring tests/,$(ARGS)),:,DBT_HISTORY_FORMAT=iceberg $(RUN) pytest $(PART) tests/iceberg $(ARGS) || test $$? -eq 5)

test-all: export ALL_VARIANTS := 1
test-all: ## The same with every variant, kill and random stream
	@$(MAKE) --no-print-directory test PART=

check: lint ## Lint, then run the tests that need no Spark: the rules in plain Python, the text of SQL and messages
	@$(RUN) pytest -n $(TEST_PROCESSES) tests/oracle tests/render $(ARGS)

iceberg: setup ## Build the examples of version tables on Iceberg (ARGS="--select …")
	@DBT_HISTORY_FORMAT=iceberg $(RUN) dbt build --target iceberg --indirect-selection cautious \
		--select $(ICEBERG_EXAMPLES) $(ARGS)

# Of mirrors and events these cases, since a run of dbt a statement takes long there; empty lists take all.
CASES_THERE := PC2 PP1 PD4 ED1 E-P1
CASES_BY_CONNECT := PC2 ED1
MIRRORS := $(addprefix tests/conformance/test_,hx_mirror.py events.py hx_readers.py)
# Over thrift test_cluster.py plays them.
RULES_BY_CONNECT := tests/conformance/test_history_batch.py::test_every_batch_replayed_changes_nothing

test-cluster: setup ## Run conformance cases, and what happens to connections, on a cluster of processes
	@CASES="$(CASES_THERE)" $(RUN) pytest --on-cluster thrift $(MIRRORS) tests/functional/test_cluster.py $(ARGS)
	@CASES="$(CASES_BY_CONNECT)" $(RUN) pytest --on-cluster connect $(RULES_BY_CONNECT) $(MIRRORS) $(ARGS)

test-matrix: setup ## Build the consumer project with the oldest and the newest dbt, parse it with dbt 2 (ARGS=oldest)
	@$(PYTHON) scripts/matrix.py $(ARGS)

lint: setup ## Check SQL, Python and YAML; no Spark
	@$(RUN) scripts/lint

fix: setup ## Let the linters repair what they can
	@$(RUN) scripts/lint --fix

docs: setup ## Make the site: guides, dbt's documentation, pictures (builds the examples if nothing is built yet)
	@test -n "$$(ls .state/warehouse 2>/dev/null)" || $(MAKE) --no-print-directory build
	@$(RUN) dbt --quiet docs generate $(ARGS)
	@PYTHONPATH=. $(RUN) python -m scripts.site.build

bench: setup ## Measure and write the results table
	@$(RUN) python bench/run.py $(ARGS)
	@$(RUN) python bench/mirrors.py $(MIRRORS_ARGS)
	@$(RUN) python bench/time_travel.py $(TRAVEL_ARGS)
	@$(RUN) python bench/feature_states.py $(FEATURES_ARGS)
	@$(RUN) python bench/landing.py $(LANDING_ARGS)
	@$(RUN) python bench/engines.py $(ENGINES_ARGS)
	@$(RUN) python bench/growth.py $(GROWTH_ARGS)

cases: ## Refresh the copy of the conformance cases
	@test -d $(SHARED_CASES) || { echo "cases: there is no $(SHARED_CASES)" >&2; exit 1; }
	@rm -rf $(CASES) && mkdir -p $(CASES) && cp -R $(SHARED_CASES)/. $(CASES) && chmod -R u+w $(CASES)
	@find $(CASES) -type f | wc -l | xargs -I{} echo "{} files in $(CASES)"

proto: setup ## Make the gRPC messages' Python from the proto file
	@$(RUN) python scripts/proto.py

lock: ## Resolve the locks after a change in pyproject.toml (ARGS=--upgrade: newest)
	@$(PYTHON) scripts/setup.py --lock $(ARGS)

clean: ## Remove all tables and build output, keep the environment
	@$(PYTHON) scripts/cluster.py stop > /dev/null
	@rm -rf .state/warehouse .state/metastore .state/cluster .state/target .state/logs dbt_packages
	@find . -name __pycache__ -type d -not -path './.venv/*' -not -path './.state/*' -prune -exec rm -rf {} +
