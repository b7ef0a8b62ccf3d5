# `make demo` and `make test` need only Python >= 3.11 with venv, and make; nothing is done twice.
# A driver for CUDA 12: make CUDA=cu12 demo. Another interpreter: make PYTHON=python3.13 demo.

CUDA ?= cu13
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(CUDA)
WORKERS ?= 2
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.PHONY: demo test lint clean

demo: $(STAMP)
	$(BIN)/pyblasgpu demo

test: $(STAMP) lint
	$(BIN)/python -m pytest -n $(WORKERS) tests/nogpu tests/gpu
	NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m pytest -n $(WORKERS) tests/sim

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

$(STAMP): setup.cfg pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 found; name one: make PYTHON=..." >&2; exit 1; }
	@echo "installing into $(VENV), which takes a minute or two"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(CUDA),sim,plot,test]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
