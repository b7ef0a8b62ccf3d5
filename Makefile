# `make demo` and `make test` need only Python >= 3.11 with venv, and make; nothing is done twice.
# A driver for CUDA 12: make CUDA=cu12 demo. Another interpreter: make PYTHON=python3.13 demo.
# `make test-frameworks` says which of PyTorch and JAX it cannot have, and skips their tests.
# `make test-numpy25` needs a Python >= 3.12 beside it; without one it says so and does nothing.

CUDA ?= cu13
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(CUDA)
WORKERS ?= 2
# a file's tests share compiled kernels and caches of a process: one worker runs them all; files in the order of
# tests/conftest.py, the long ones first
DIST := --dist loadfile --no-loadscope-reorder
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# NumPy 2.5 needs it; pyenv's names on the path start only what is chosen there
PYTHON312 ?= $(shell for p in python3.13 python3.12 python3 $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.1[23].*/bin/python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo $$p && break; done)
VENV25 := .venv-numpy25
NUMPY25_NOGPU := $(addprefix tests/nogpu/test_,backend.py arrays.py blas.py compile.py cpu.py level3.py linalg.py)
NUMPY25_SIM := $(addprefix tests/sim/test_,copy_scaled.py leaves.py pack.py simulated_block.py simulated_flags.py simulated_memory.py simulator.py)
VENVFW := .venv-frameworks
STAMPFW := $(VENVFW)/.installed-$(CUDA)
FRAMEWORKS_NOGPU := $(addprefix tests/nogpu/test_,arrays_real_libraries.py blas_casts.py gpu_tests.py linalg_determinant.py \
	linalg_keywords.py linalg_products.py linalg_solve.py linalg_spectra_device.py linalg_warnings.py torch_compile.py \
	written_tensors.py)
FRAMEWORKS_WHOLE := $(addprefix tests/nogpu/test_,docs.py docstrings.py examples.py programs.py)
VENVDOCS := .venv-docs
STAMPDOCS := $(VENVDOCS)/.installed
STAMP25 := $(VENV25)/.installed-$(CUDA)

.PHONY: demo stubs wheel test test-nogpu test-sim docs test-numpy25 test-frameworks check-kernels check-kernels-if-due lint clean

demo: $(STAMP)
	$(BIN)/pyblasgpu demo

test: lint test-nogpu test-sim

# with a GPU, the tests that need one too
test-nogpu: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) $(DIST) tests/nogpu tests/gpu

test-sim: $(STAMP)
	NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m pytest -n $(WORKERS) $(DIST) tests/sim

# part of the suite beside NumPy 2.5: what imports Numba, a few kernels compiled, a few simulated, host arrays
ifeq ($(PYTHON312),)
test-numpy25:
	@echo "skipped: NumPy 2.5 needs Python >= 3.12, and there is none here; name one: make PYTHON312=... $@"
else
test-numpy25: $(STAMP25)
	$(VENV25)/bin/python -c 'import numpy, sys; print("NumPy", numpy.__version__, "Python", sys.version)'
	$(VENV25)/bin/python -m pytest -n $(WORKERS) $(DIST) $(NUMPY25_NOGPU) -k 'not tightest or trmm_leaf'
	NUMBA_ENABLE_CUDASIM=1 $(VENV25)/bin/python -m pytest -n $(WORKERS) $(DIST) $(NUMPY25_SIM)
endif

# operators of PyTorch and JAX, what other tests say of tensors and of JAX's arrays, programs that call SciPy, and
# the documents, of which `make test` skips what needs these packages or numpydoc; without a GPU
test-frameworks: $(STAMPFW)
	@cat $(STAMPFW)
	@$(VENVFW)/bin/python -c 'import torch' 2>/dev/null || $(VENVFW)/bin/python -c 'import jax' 2>/dev/null || exit 0; \
	set -x; $(VENVFW)/bin/python -m pytest -n $(WORKERS) $(DIST) tests/frameworks
	$(VENVFW)/bin/python -m pytest -n $(WORKERS) $(DIST) $(FRAMEWORKS_NOGPU) -k 'torch or jax or strict or tensor or librar'
	$(VENVFW)/bin/python -m pytest -n $(WORKERS) $(DIST) $(FRAMEWORKS_WHOLE)

# spills, registers and PTX of every kernel that the package chooses: half an hour on two cores
check-kernels: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) $(DIST) tests/kernels
	$(BIN)/python tests/checked_kernels.py record

check-kernels-if-due: $(STAMP)
	@$(BIN)/python tests/checked_kernels.py due; \
	case $$? in 0) $(MAKE) check-kernels ;; 3) ;; *) exit 1 ;; esac

# the site, in docs/_build/html
docs: $(STAMPDOCS)
	rm -rf docs/gallery docs/api/generated
	$(VENVDOCS)/bin/sphinx-build -W --keep-going -b html docs docs/_build/html

# what type checkers read of the public modules, from the signatures that these have
stubs: $(STAMP)
	$(BIN)/python tools/make_stubs.py

# with the kernels of all architectures built ahead; hours, and `pyblasgpu build` goes on where it stopped
wheel: $(STAMP)
	$(BIN)/python tools/wheels.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP25): setup.cfg pyproject.toml
	@echo "installing into $(VENV25), which takes a minute or two"
	@test -x $(VENV25)/bin/python || $(PYTHON312) -m venv $(VENV25)
	@$(VENV25)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[$(CUDA),sim,test]' 'numpy>=2.5'
	@touch $@

$(STAMPFW): setup.cfg pyproject.toml tools/frameworks.py
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 found; name one: make PYTHON=..." >&2; exit 1; }
	@echo "installing PyTorch and JAX into $(VENVFW), which takes some minutes"
	@test -x $(VENVFW)/bin/python || $(PYTHON) -m venv $(VENVFW)
	@$(VENVFW)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[$(CUDA),test]'
	@$(VENVFW)/bin/python tools/frameworks.py $@

$(STAMPDOCS): setup.cfg pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 found; name one: make PYTHON=..." >&2; exit 1; }
	@echo "installing into $(VENVDOCS), which takes a minute or two"
	@test -x $(VENVDOCS)/bin/python || $(PYTHON) -m venv $(VENVDOCS)
	@$(VENVDOCS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

$(STAMP): setup.cfg pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 found; name one: make PYTHON=..." >&2; exit 1; }
	@echo "installing into $(VENV), which takes a minute or two"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(CUDA),sim,plot,test]'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV25) $(VENVFW) $(VENVDOCS) docs/_build docs/gallery docs/api/generated build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
