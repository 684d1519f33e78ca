# Everything here works with nothing but Python 3.11+ and make: the first target that needs .venv builds it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CASES ?= ../shared/conformance
PEERS ?= ../shared/peers
DATA ?= ../shared/data
HOURS ?=
BENCH ?=
MEMORY ?=
WALK ?=
RUNS ?= $(if $(MEMORY),300,30)
SEED ?= 1
TURNS ?= 24
FAULTS ?= 7
ONLY ?=
MINUTES ?= 15
TESTS ?= tests
WORKERS ?= 2

# Ray would otherwise look for `uv run` among our parents and build a second environment for every worker.
export RAY_ENABLE_UV_RUN_RUNTIME_ENV := 0
export RAY_USAGE_STATS_ENABLED := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help install demo test services properties check format conformance bench bench-real peers chaos mutants soak clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

install: $(VENV)/.kernels ## make .venv with everything, kernels compiled

# uv takes a quarter of pip's time. Where it gets no packages, say from an index that only pip was told of, pip does it.
PACKAGES := --constraint constraints.txt --editable ".[dev]"
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Clearway needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip' \
	  || { echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian: python3-venv)" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode $(PACKAGES) \
	  || $(BIN)/python -m pip install --quiet $(PACKAGES)
	touch $@

# Numba keeps machine code beside the sources. It notices a changed file, but not that a kernel calls one in another
# file that changed: so whenever the core changes, all of it is compiled anew.
$(VENV)/.kernels: $(VENV)/.installed $(shell find pipeline -name '*.py')
	find pipeline -name '*.nb[ci]' -delete
	$(BIN)/clearway warm
	touch $@

demo: install ## watch Clearway make room on a fleet of 1,523 nodes (under two minutes)
	$(BIN)/clearway demo

# Styles and types are checked while kernels compile, which leaves part of a processor idle.
test: ## check, then the tests under TESTS= but those of services, on WORKERS= processes for each of the two kinds
	@$(MAKE) --no-print-directory --jobs 2 install check
	$(BIN)/python -m tests --workers $(WORKERS) $(TESTS)

services: install ## tests that start one service after another, in one process: they take over, end, lose machines and brokers
	$(BIN)/python -m tests --services --workers 1

properties: install ## ask each property about all its examples, and play more schedules in memory
	HYPOTHESIS_PROFILE=deep $(BIN)/python -m tests --workers $(WORKERS) tests/property tests/unit tests/chaos

check: $(VENV)/.installed ## style, types, import rules, compose and Dockerfile
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict -p pipeline -p actors
	$(BIN)/lint-imports --no-cache
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/yamllint --strict docker-compose.yml deploy
	$(BIN)/hadolint deploy/Dockerfile

format: $(VENV)/.installed ## rewrite the sources in house style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

conformance: install ## run the cases under CASES and write docs/conformance.md
	@test -f $(CASES)/check.py || { echo "$(CASES): expected the cases and their check.py there; name the folder with CASES=" >&2; exit 2; }
	$(BIN)/python -m tests.conformance.report --cases $(CASES) --output docs/conformance.md

bench: install ## measure the budgets (BENCH="--only NAME" or "--json"); KAI Scheduler's fleets if PEERS is there
	$(BIN)/clearway bench $(if $(wildcard $(PEERS)/fleets.py),--peers $(PEERS)) $(BENCH)

bench-real: install ## replay the recorded clusters under DATA, default and volcano side by side (HOURS="--hours N" of each stream)
	@test -d $(DATA) || { echo "$(DATA): expected the recorded clusters there; name the folder with DATA=" >&2; exit 2; }
	$(BIN)/clearway replay all --data $(DATA) $(HOURS)

peers: install ## decide the fleets of PEERS beside other schedulers' figures; write and draw docs/peers.md
	@test -d $(PEERS) || { echo "$(PEERS): expected the fleets and their judge there; name the folder with PEERS=" >&2; exit 2; }
	$(BIN)/python -m tests.peers.report --peers $(PEERS) --output docs/peers.md
	$(BIN)/python -m tests.peers.plot --page docs/peers.md --output docs/peers.svg

chaos: install ## RUNS= fault schedules from SEED= on, real (MEMORY=1 TURNS= FAULTS=: in memory; WALK=n: every order)
	$(BIN)/python -m tests.chaos $(if $(WALK),--walk $(WALK),$(if $(MEMORY),--memory,--real)) \
	  --turns $(TURNS) --faults $(FAULTS) --runs $(RUNS) --seed $(SEED)

mutants: install ## put each of about 200 faults into a copy of the sources and name those that no test notices (ONLY="words")
	$(BIN)/python -m tests.mutants --workers $(WORKERS) --only "$(ONLY)"

soak: install ## run a service and a fleet for MINUTES= and fail if memory, streams or durations drift
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

clean: ## remove .venv and every cache
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
