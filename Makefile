# Everything starts here: `make help` lists it. A fresh clone needs Python 3.11, make and the package registries.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# What is compiled once need not be compiled by each of the hundreds of processes that tests start, whatever the caller's
# shell says: it is a third of the time that a process takes to come up.
unexport PYTHONDONTWRITEBYTECODE
MANAGE := $(BIN)/python manage.py
# One test process per core, at most four; JOBS=0 runs the tests in one process.
JOBS ?= $(shell $(PYTHON) -c 'import os; print(min(4, os.cpu_count() or 1))')
# Checks look at the source, not at the data or the database of whoever runs them.
ALONE := env -u DATABASE_URL CRONOQ_DATA_DIR=.cronoq-test
PYTEST := $(BIN)/python -m pytest
# Tests with real processes and clocks may fail for want of a processor. What fails is named, then tried once more with
# the machine to itself; what fails again is broken.
define tests
	$(PYTEST) -n $(JOBS) $(1) || { \
		echo "These failed. Once more, alone:" && $(PYTEST) -n 0 --last-failed --last-failed-no-failures none $(1); }
endef
COMPILE := CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile pyproject.toml --quiet --generate-hashes --strip-extras \
	--allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

.PHONY: help setup setup-run run test check types source fmt bench rehearse browser sim coverage lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | expand -t 12

setup: ## virtual environment with everything, and a Chromium for the browser tests
	@$(PYTHON) .scripts/setup.py dev

setup-run:
	@$(PYTHON) .scripts/setup.py run

run: setup-run ## serve http://127.0.0.1:8000/ with demo data (PORT=, DEMO=0, CRONOQ_DATA_DIR=, DATABASE_URL=)
	@$(MANAGE) prepare
	@$(MANAGE) serve --with-parent

test: setup check ## every check and every test
	$(call tests,-m "not acceptance and not browser" --dist loadgroup)
	$(call tests,-m "acceptance or browser" --dist loadgroup --no-loadscope-reorder)

check: setup ## lint, format, types, architecture, Django's checks, missing migrations
	@$(MAKE) --jobs 2 --output-sync types source

# The two halves of `check`, side by side: the types take one processor as long as all the rest the other.
types:
	$(ALONE) $(BIN)/mypy

source:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(ALONE) $(MANAGE) check --fail-level WARNING
	$(ALONE) $(MANAGE) makemigrations --check --dry-run

fmt: setup ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## measure; ARGS="drain latency" picks scenarios
	$(MANAGE) bench $(ARGS)

rehearse: setup ## play a bad day through: NAME=campaign or tickets, ARGS="--scale 0.1"
	$(MANAGE) rehearse $(NAME) $(ARGS)

browser: setup ## only the tests that drive a browser
	$(PYTEST) -m browser $(ARGS)

coverage: setup ## what the tests of the policy alone do not reach of it, by line and branch
	$(PYTEST) tests/policy -q -n $(JOBS) --timeout 600 --cov=scheduler.policy --cov-branch --cov-report=term-missing:skip-covered

sim: setup ## the seeded simulation; SEED= replays one run
	$(if $(SEED),SEED=$(SEED)) $(PYTEST) tests/simulation $(ARGS)

lock: setup ## resolve the dependencies of pyproject.toml anew into the lock files
	$(COMPILE) --upgrade -o requirements.lock
	$(COMPILE) --upgrade --extra dev -c requirements.lock -o requirements-dev.lock

clean: ## remove the virtual environment and caches; data directories are kept
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
