# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Rewritten after every installation; older than pyproject.toml means: install again.
INSTALLED := $(VENV)/installed
INSTALLED_DOCS := $(VENV)/installed-docs

.PHONY: demo test lint format docs bench clean

demo: $(INSTALLED)
	$(BIN)/marginmf demo

test: $(INSTALLED)
	$(BIN)/python -m pytest -n auto

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
	$(BIN)/python -m benchmarks ratings --threads 1 2 $(BENCH)
	$(BIN)/python -m benchmarks labels $(BENCH)
	$(BIN)/python -m benchmarks serving $(BENCH)

clean:
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(INSTALLED_DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@
