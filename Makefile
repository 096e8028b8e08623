# Every target builds what it needs in $(VENV) from pyproject.toml and constraints.txt; a second call finds it ready.
#   make test | test-all | test-lowest | test-newest | triton | lint | types | demo | notebooks | docs | wheel | bench | clean
#   make test ARGS="-k bradley -x"
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

.PHONY: help core test test-all test-lowest test-newest test-trainers triton lint types demo notebooks docs wheel bench clean

help:
	@sed -n '1,3p' Makefile

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

# Kernels are compiled once, before two workers ask for them.
WARM := $(PY) -W ignore -c "from torchpref.kernels import warm_up; warm_up()"
TWO := -n 2 --dist loadfile

# What is quick, and property tests on a share of their examples: minutes.
test: $(VENV)/.test
	$(WARM)
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-quick} $(PY) -m pytest $(TWO) -m "not slow" $(ARGS)

# Everything else: what is slow, and property tests on all of their examples (HYPOTHESIS_PROFILE=nightly: on many more).
test-all: $(VENV)/.test
	$(WARM)
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-full} $(PY) -m pytest -n 2 --dist worksteal -m "slow or hypothesis" $(ARGS)

# The oldest and the newest versions of what the package itself needs, without any extra; torch is the pinned build.
# LOWEST_PYTHON and NEWEST_PYTHON choose the interpreter: make test-newest NEWEST_PYTHON=python3.13
LOWEST_PYTHON ?= $(PYTHON)
NEWEST_PYTHON ?= $(PYTHON)
define bounds
	@test -x .venv-uv/bin/uv || { "$(PYTHON)" -m venv .venv-uv && .venv-uv/bin/python -m pip install --quiet "uv>=0.9" 2>&1 | sed '/ is ignored/d'; }
	"$(2)" -m venv --clear .venv-$(1)
	.venv-$(1)/bin/python -m pip install --quiet "$(TORCH)" 2>&1 | sed '/ is ignored/d; /Ignoring/d'
	UV_FIND_LINKS="$${UV_FIND_LINKS:-$$PIP_FIND_LINKS}" SSL_CERT_FILE="$${SSL_CERT_FILE:-$$PIP_CERT}" .venv-uv/bin/uv pip install --quiet \
		--python .venv-$(1)/bin/python --resolution $(3) "$(TORCH)" -e . "pytest>=8" "hypothesis>=6.100" "pytest-xdist>=3.6"
	.venv-uv/bin/uv pip list --quiet --python .venv-$(1)/bin/python | grep -Ei '^(torch|numpy|scipy|numba|polars|jaxtyping|typer|rich) '
	HYPOTHESIS_PROFILE=quick .venv-$(1)/bin/python -m pytest $(TWO) -m "not slow" -W default $(ARGS)
endef

test-lowest:
	$(call bounds,lowest,$(LOWEST_PYTHON),lowest-direct)

test-newest:
	$(call bounds,newest,$(NEWEST_PYTHON),highest)

# The CUDA kernel, without a GPU: through Triton's interpreter, and compiled ahead of time.
triton: $(VENV)/.triton
	$(PY) -m pytest tests/kernels -k "cuda or triton" $(ARGS)

# The adapters against the trainers themselves, each in its own environment: they do not go together, nor with `make test`.
TRAINERS := verifiers art tinker verl
verifiers_PINS := verifiers==0.4.0
art_PINS := openpipe-art==0.5.18
tinker_PINS := tinker==0.38.0 chz termcolor transformers datasets pillow
tinker_ALONE := tinker-cookbook==0.6.1
verl_PINS := tensordict transformers omegaconf hydra-core ray codetiming dill peft orjson torchdata TransferQueue datasets pillow cachetools uvicorn fastapi
verl_ALONE := verl==0.9.1
test-trainers: $(addprefix .venv-trainers/,$(addsuffix /.made,$(TRAINERS)))
	@for name in $(TRAINERS); do \
		PYTHONPATH=. .venv-trainers/$$name/bin/python -m pytest -m "not slow or slow" "tests/rl/integrations/test_real_$$name.py" $(ARGS); done

.venv-trainers/%/.made: Makefile pyproject.toml
	"$(PYTHON)" -m venv --clear .venv-trainers/$*
	.venv-trainers/$*/bin/python -m pip install --quiet "$(TORCH)" numpy numba jaxtyping pytest hypothesis $($*_PINS) 2>&1 | sed '/ is ignored/d; /Ignoring/d'
	$(if $($*_ALONE),.venv-trainers/$*/bin/python -m pip install --quiet --no-deps $($*_ALONE) 2>&1 | sed '/ is ignored/d')
	@touch $@

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

# What a user gets: the wheel, well described, installed alone into a fresh environment, shows the demo.
wheel:
	rm -rf build/wheel
	"$(PYTHON)" -m venv --clear .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet "build>=1.2" "twine>=6" 2>&1 | sed '/ is ignored/d'
	.venv-wheel/bin/python -m build --outdir build/wheel .
	.venv-wheel/bin/python -m twine check --strict build/wheel/*
	"$(PYTHON)" -m venv --clear .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet -c constraints.txt "$(TORCH)" build/wheel/*.whl 2>&1 | sed '/ is ignored/d; /Ignoring/d'
	cd build/wheel && ../../.venv-wheel/bin/torchpref demo

bench: $(VENV)/.bench
	@for script in benchmarks/*.py; do echo "== $$script"; $(PY) "$$script"; done

clean:
	rm -rf $(VENV) .venv-core .venv-wheel .venv-uv .venv-lowest .venv-newest .venv-trainers build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
