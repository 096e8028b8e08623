# Every target builds what it needs in $(VENV) from pyproject.toml and constraints.txt; a second call finds it ready.
#   make test | lint | types | demo | notebooks | docs | bench | clean        make test ARGS="-k bradley -x"
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
PY := $(VENV)/bin/python
TORCH := $(shell sed -n 's/^torch==/torch==/p' constraints.txt)
ARGS ?=

export OMP_NUM_THREADS ?= 1
export NUMBA_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The first interpreter that is there, is new enough and can make environments. `make PYTHON=...` overrules.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

# pip prints a line for every file in a find-links folder that is not for this platform: noise, dropped.
define install
	$(PY) -m pip install --quiet -c constraints.txt "$(TORCH)" $(1) 2>&1 | sed '/ is ignored/d; /Ignoring/d'
	@touch $@
endef

.PHONY: help core test triton test-fast lint types demo notebooks docs bench clean

help:
	@sed -n '1,2p' Makefile

$(VENV)/.made:
	@if [ -z "$(PYTHON)" ]; then \
		echo "torchpref needs Python 3.11 or newer with the venv module, and found none. Try: make PYTHON=/path/to/python3.11" >&2; exit 1; fi
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "torchpref needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" --version 2>&1)" >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.made pyproject.toml constraints.txt
	$(call install,-e .)

$(VENV)/.test: $(VENV)/.made pyproject.toml constraints.txt
	$(call install,-e ".[test]")

$(VENV)/.triton: $(VENV)/.test
	$(call install,-e ".[triton]")

$(VENV)/.dev: $(VENV)/.made pyproject.toml constraints.txt
	$(call install,-e ".[dev]")

$(VENV)/.notebooks: $(VENV)/.made pyproject.toml constraints.txt
	$(call install,-e ".[notebooks]")

$(VENV)/.docs: $(VENV)/.made pyproject.toml constraints.txt
	$(call install,-e ".[docs]")

$(VENV)/.bench: $(VENV)/.made pyproject.toml constraints.txt
	$(call install,-e ".[bench]")

core: $(VENV)/.core

test: $(VENV)/.test
	$(PY) -m pytest $(ARGS)

# The CUDA kernel, without a GPU: through Triton's interpreter, and compiled ahead of time.
triton: $(VENV)/.triton
	$(PY) -m pytest tests/kernels -k "cuda or triton" $(ARGS)

test-fast: $(VENV)/.test
	$(PY) -m pytest -m "not slow" $(ARGS)

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .

types: $(VENV)/.dev
	$(VENV)/bin/mypy

demo: $(VENV)/.core
	$(VENV)/bin/torchpref demo $(ARGS)

notebooks: $(VENV)/.notebooks
	$(PY) -m pytest --nbmake --nbmake-timeout=300 -W default notebooks $(ARGS)

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --site-dir build/site

bench: $(VENV)/.bench
	@for script in benchmarks/*.py; do echo "== $$script"; $(PY) "$$script"; done

clean:
	rm -rf $(VENV) .venv-core build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
