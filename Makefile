# Targets work on their own virtual environment; nothing is installed anywhere else.
#
#   make test PYTHON=python3.12 VENV=/tmp/venv

# The newest Python here that is new enough and really runs.
PYTHON ?= $(shell for each in python3.13 python3.12 python3.11 python3; do \
	$$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$each && break; \
	done)
VENV ?= .venv
BIN := $(VENV)/bin
QUESTION ?=
MODEL ?=
BASE_URL ?=
PYTEST ?=
BENCH ?=
export QUESTION MODEL BASE_URL

.DEFAULT_GOAL := help
.PHONY: help demo test check fix bench bench-peers clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.ready-demo ## See a graph of agents at work (QUESTION=…, MODEL=connection:id, BASE_URL=…)
	@$(BIN)/littleghost demo $${MODEL:+--model "$$MODEL"} $${BASE_URL:+--base-url "$$BASE_URL"} -- "$$QUESTION"

test: $(VENV)/.ready-dev ## Run all tests (PYTEST='-k name' for some)
	$(BIN)/python -m pytest $(PYTEST)

check: $(VENV)/.ready-dev ## Lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

fix: $(VENV)/.ready-dev ## Format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.ready-dev ## Measure every figure beside its goal; writes benchmarks/results.md (BENCH=--quick for a look)
	$(BIN)/python -m benchmarks $(BENCH)

bench-peers: $(VENV)/.ready-dev ## Measure other systems beside this one; writes benchmarks/peers.md
	$(BIN)/python -m benchmarks.peers $(BENCH)

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer; say PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A package list is installed anew when the project's file changes.
$(VENV)/.ready-demo: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[embedded,cli]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev,embedded,cli]'
	@touch $@
