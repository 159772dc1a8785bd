# tinylight-hil. Two commands do everything: `make hil` runs the main job, `make test` passes the tests.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
INSTALL = $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt

# The data-set folder beside a checkout is used when it is there; TINYLIGHT_DATA names others.
export TINYLIGHT_DATA ?= $(abspath $(wildcard ../shared/datasets))

.PHONY: help setup hil test lint docs bench fuzz clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready-hil  ## System packages (apt, or says what is missing) and .venv

hil: setup  ## Run the main job: traffic in the simulator, every decision made by the emulated chip (ARGS=... is passed on)
	$(BIN)/tinylight hil $(ARGS)
	@mkdir -p build && $(BIN)/tinylight hil --mode alone --monitor --network crossing > build/alone.txt; \
		status=$$?; tail -n 1 build/alone.txt; exit $$status

test: $(VENV)/.ready-test  ## Run all tests, those on the emulated chip included (ARGS=... is passed on)
	$(BIN)/python -m pytest -n auto --dist worksteal --hil=simavr $(ARGS)

lint: $(VENV)/.ready-test  ## ruff and mypy
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

docs: $(VENV)/.ready-hil  ## Build the documentation site into build/site (strict: a warning is a fault)
	$(INSTALL) -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "build/site/index.html"

bench: $(VENV)/.ready-test  ## Measure speed (pytest-benchmark)
	$(BIN)/python -m pytest benchmarks --benchmark-only $(ARGS)

fuzz: $(VENV)/.ready-test  ## Fuzz the firmware's protocol code with libFuzzer (needs Debian's clang and libclang-rt-14-dev)
	$(BIN)/python -m tests.firmware.fuzz.run $(ARGS)

clean:  ## Remove what was built (not .venv)
	rm -rf build .pio .pytest_cache .mypy_cache .ruff_cache

define new_venv
	@test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null 2>&1 || \
		{ echo "setup: $(PYTHON) brings no pip (no ensurepip): name another with: make PYTHON=/usr/bin/python3" >&2; exit 2; }
endef

$(VENV)/.ready-hil: pyproject.toml constraints.txt scripts/system_packages.sh
	@echo "setup: what the main job needs goes into $(VENV); this takes a few minutes, once"
	@PYTHON="$(PYTHON)" scripts/system_packages.sh
	$(new_venv)
	$(INSTALL) -e '.[firmware]'
	@touch $@

$(VENV)/.ready-test: pyproject.toml constraints.txt scripts/system_packages.sh
	@echo "setup: what the main job and the tests need, PyTorch among it, goes into $(VENV); this takes a few minutes, once"
	@PYTHON="$(PYTHON)" scripts/system_packages.sh chromium
	$(new_venv)
	$(INSTALL) -e '.[firmware,train,plot,gym,pettingzoo,sb3,sumo,cluster,test]'
	@command -v npm >/dev/null && npm install --silent --no-audit --no-fund --prefix tests/firmware/avr8js || \
		echo "setup: no npm, or it got nothing: the second emulator's tests will be skipped" >&2
	@touch $(VENV)/.ready-hil $@
