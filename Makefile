# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Rewritten after every installation; older than pyproject.toml means: install again.
INSTALLED := $(VENV)/installed
INSTALLED_DOCS := $(VENV)/installed-docs
KERNEL_TESTS := tests/backends tests/ratings/test_objective.py

.PHONY: demo test test-matrix lint format docs bench clean

demo: $(INSTALLED)
	$(BIN)/marginmf demo

test: $(INSTALLED)
	$(BIN)/python -m pytest -n auto

# The kernels' tests with the lowest and the newest Numba that are allowed, each in an environment of
# its own, with the plain loops, and for a processor of which nothing is known.
test-matrix: $(INSTALLED)
	set -e; for numba in 'numba==0.60.*' 'numba'; do \
	  rm -rf $(VENV)-numba; $(PYTHON) -m venv $(VENV)-numba; \
	  $(VENV)-numba/bin/python -m pip install --quiet --disable-pip-version-check \
	    --editable '.[dev]' "$$numba"; \
	  NUMBA_CACHE_DIR=$(VENV)-numba/cache $(VENV)-numba/bin/python -m pytest -n auto $(KERNEL_TESTS); \
	done
	NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=$(VENV)/generic $(BIN)/python -m pytest -n auto $(KERNEL_TESTS)
	MARGINMF_PLAIN_KERNELS=1 $(BIN)/python -m pytest -n auto $(KERNEL_TESTS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(INSTALLED_DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "The documentation is in site/index.html"

# Beside all peers, each in an environment of its own: hours.  BENCH="--quick" takes minutes.
bench: $(INSTALLED)
	$(BIN)/python -m studies ratings --threads 1 2 $(BENCH)
	$(BIN)/python -m studies labels $(BENCH)
	$(BIN)/python -m studies serving $(BENCH)

clean:
	rm -rf $(VENV) $(VENV)-numba build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(INSTALLED_DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@
