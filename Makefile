# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Rewritten after every installation; older than pyproject.toml means: install again.
INSTALLED := $(VENV)/installed
INSTALLED_DOCS := $(VENV)/installed-docs
LOWEST := $(VENV)-lowest
TOOLS := $(VENV)-tools
KERNEL_TESTS := tests/backends tests/ratings/test_objective.py
# Real data for the README's examples: a folder of your own, or one beside the checkout; else a download.
DATA := $(or $(MARGINMF_DATA),$(abspath $(wildcard ../shared/data)))

.PHONY: help demo test fuzz test-matrix lint format docs wheel wheel-test constraints sbom bench clean

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(INSTALLED) ## compare the main methods on MovieLens 100K
	$(BIN)/marginmf demo

test: $(INSTALLED) ## run the tests
	$(BIN)/python -m pytest -n auto --dist worksteal

# All attacks with one seed take seven minutes on two cores; FUZZ="--seed 1 --minutes 5" bounds them.
fuzz: $(INSTALLED) ## attack everything that reads files or is called at the same time (FUZZ="--seed 1")
	PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZ)

# The kernels' tests with the lowest and the newest Numba that are allowed, each in an environment of
# its own, with the plain loops, and for a processor of which nothing is known.
test-matrix: $(INSTALLED) ## run the kernels' tests with the lowest and the newest Numba
	set -e; for numba in 'numba==0.60.*' 'numba'; do \
	  rm -rf $(VENV)-numba; $(PYTHON) -m venv $(VENV)-numba; \
	  $(VENV)-numba/bin/python -m pip install --quiet --disable-pip-version-check \
	    --editable '.[dev]' "$$numba"; \
	  NUMBA_CACHE_DIR=$(VENV)-numba/cache $(VENV)-numba/bin/python -m pytest -n auto $(KERNEL_TESTS); \
	done
	NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=$(VENV)/generic $(BIN)/python -m pytest -n auto $(KERNEL_TESTS)
	MARGINMF_PLAIN_KERNELS=1 $(BIN)/python -m pytest -n auto $(KERNEL_TESTS)

lint: $(INSTALLED) ## ruff check, ruff format --check, mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED) ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(INSTALLED_DOCS) ## build the documentation site, strictly, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "The documentation is in site/index.html"

wheel: $(INSTALLED) ## build the wheel into dist/
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --wheel-dir dist .
	@ls -l dist

# An empty environment: the plain install, at the lowest versions that pyproject.toml allows.
$(LOWEST)/installed: pyproject.toml .ci/lowest
	$(PYTHON) -m venv --clear $(LOWEST)
	.ci/lowest > $(LOWEST)/lowest.txt
	.ci/install $(LOWEST)/bin/python .ci/constraints-lowest.txt --requirement $(LOWEST)/lowest.txt
	touch $@

wheel-test: wheel $(LOWEST)/installed ## run the first pages from the wheel, with the lowest dependencies alone
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
	MARGINMF_DATA='$(DATA)' $(LOWEST)/bin/python tests/examples.py README.md docs/index.md docs/files.md

# For .ci/install.  uv, because one command of it knows the hashes of all wheels of a version.
COMPILE := $(TOOLS)/bin/uv pip compile --quiet --upgrade --python-version 3.11 --python-platform linux \
  --generate-hashes --no-annotate --no-header --no-emit-index-url
constraints: $(TOOLS)/installed ## pin the newest and the lowest dependencies, with hashes
	mkdir -p build
	{ echo '# Python 3.11 on Linux'; echo '# By `make constraints`: the newest that are allowed.'; \
	  $(COMPILE) --extra dev --extra docs pyproject.toml; } > build/constraints.txt
	{ echo '# Python 3.11 on Linux'; echo '# By `make constraints`: the lowest that are allowed.'; \
	  .ci/lowest | $(COMPILE) -; } > build/constraints-lowest.txt
	mv build/constraints.txt build/constraints-lowest.txt .ci

# What a user installs, as CycloneDX, for the notes of a release.
sbom: wheel $(TOOLS)/installed ## list what an installation has in it, in dist/sbom.cdx.json
	$(PYTHON) -m venv --clear $(VENV)-sbom
	$(VENV)-sbom/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	$(VENV)-sbom/bin/python -m pip uninstall --quiet --yes pip setuptools
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library \
	  --output-reproducible --validate --output-file dist/sbom.cdx.json $(VENV)-sbom/bin/python

# Tools of a release, apart from what the project is developed with.
$(TOOLS)/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check \
	  'uv>=0.13,<0.14' 'cyclonedx-bom>=7.5,<8'
	touch $@

# Beside all peers, each in an environment of its own: hours.  BENCH="--quick" takes minutes.
bench: $(INSTALLED) ## compare with other libraries (hours; BENCH=--quick takes minutes)
	$(BIN)/python -m studies ratings --threads 1 2 $(BENCH)
	$(BIN)/python -m studies labels $(BENCH)
	$(BIN)/python -m studies serving $(BENCH)

clean: ## remove what these commands made
	rm -rf $(VENV) $(VENV)-numba $(VENV)-sbom $(LOWEST) $(TOOLS) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	.ci/install $(BIN)/python .ci/constraints.txt --editable '.[dev]'
	touch $@

$(INSTALLED_DOCS): $(INSTALLED)
	.ci/install $(BIN)/python .ci/constraints.txt --editable '.[docs]'
	touch $@
