# `make help` lists the targets. On a fresh machine, start with `make bench`.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
BIN := $(VENV)/bin
LOCKS := images/cpu

# The newest Python that the frameworks publish wheels for. Each candidate is run, because a version manager can have a shim
# for a Python that it has not installed. If none runs, preflight.py says what to install.
SUITABLE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c '$(SUITABLE)' 2>/dev/null && echo $$python && exit; done; echo python3)

# The index of PyTorch's CPU builds. If it is empty (`make TORCH_INDEX= bench`), pip looks only where it is configured to.
# Either way install_torch.py accepts only a CPU build.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

DOCKER ?= docker
PYTEST := $(BIN)/python -m pytest
# Processes that run tests. Tests wait for a third of their time: on two CPUs three processes keep both busy.
WORKERS ?= 3
# The marks of what `make test-long` runs.
LONG ?= slow or docker
PROSE := README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs
# --no-deps: the locks are complete, so pip has nothing to resolve. --no-compile: compileall compiles on every core; without
# it a framework's first import would compile, and the run would report that as import time. -x skips files for newer Pythons.
COMPILE = @$(BIN)/python -m compileall -q -j 0 -x '/py3[0-9]*_' $(VENV)/lib
PIP_INSTALL := @$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps

.PHONY: help setup setup-dev bench test test-long golden lint format lock image-cpu image-gpu image-tpu docs reference wheels clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.kit ## Install Steadykit, its native clock, and TensorFlow, PyTorch and JAX for the CPU, into .venv
	@echo "steadykit: ready. Type:  . $(BIN)/activate  and then:  kit run --quick"

setup-dev: $(VENV)/.kit $(VENV)/.dev ## The same, and what tests and checks need

bench: $(VENV)/.kit ## Measure the quick suite on this machine and print the comparison
	@mkdir -p bench
	@$(BIN)/kit run quick --out bench/quick-$$(date -u +%Y%m%dT%H%M%SZ).json
	@echo "steadykit: the command kit is in $(BIN); type:  . $(BIN)/activate"

test: setup-dev ## Run the tests, without the long ones
	$(PYTEST) -n $(WORKERS) -m "not slow and not docker"

test-long: setup-dev ## Run the long tests, and those that need a Docker engine if there is one
	@# What needs a verdict of a measurement runs alone.
	$(PYTEST) -n $(WORKERS) --durations=40 -m "($(LONG)) and not quiet"
	$(PYTEST) --durations=10 -m "($(LONG)) and quiet"

golden: setup-dev ## Write what the commands print now to tests/golden/outputs; `git diff` shows what has changed
	$(BIN)/python tests/golden/regenerate.py

lint: setup-dev ## Check code (Ruff, mypy, imports), workflows, spelling and prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy kit images
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tests/import_circles.py kit
	$(BIN)/python tests/empty_names.py kit tests native images docs profiles
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions $(wildcard .github/actions/*/action.yml)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(wildcard .github/workflows/*.yml) docs/examples/github-actions.yml
	$(BIN)/codespell $(PROSE)
	$(BIN)/python tests/prose.py $(PROSE)

format: setup-dev ## Let Ruff rewrite the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup-dev ## Write the lock files from pyproject.toml and images/*/*.in; LOCK_FLAGS=--upgrade takes newer versions
	$(BIN)/python images/lock.py $(LOCK_FLAGS)

image-cpu: ## Build the Docker image for CPUs; DOCKER_BUILD_FLAGS goes to docker build
image-gpu: ## Build the image for NVIDIA GPUs
image-tpu: ## Build the image for TPUs

image-cpu image-gpu image-tpu: image-%:
	DOCKER="$(DOCKER)" TORCH_INDEX="$(TORCH_INDEX)" sh images/build $*

docs: setup-dev ## Build the documentation in site/; fails if a generated page is stale or a link is broken
	$(BIN)/python docs/generate.py --check
	@# Not --quiet: it also hides warnings from --strict, and a broken link would pass.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

reference: setup-dev ## Write the pages of docs/reference/ that are generated from the code
	$(BIN)/python docs/generate.py

wheels: $(VENV)/.python ## Build an sdist, and wheels for x86-64 and aarch64, in dist/
	$(BIN)/python images/wheels.py --out dist

clean: ## Remove the environment and everything built; profiles stay
	rm -rf $(VENV) build dist site *.egg-info kit/*.so kit/_clock.c .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find kit tests native images -name __pycache__ -type d -prune -exec rm -rf {} +

# Each step leaves a stamp, so that a second make does not repeat it.

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { echo "steadykit: $(PYTHON) is not installed; install Python 3.11 to 3.13" >&2; exit 1; }
	@$(PYTHON) images/preflight.py
	@echo "steadykit: making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.frameworks: $(VENV)/.python $(wildcard $(LOCKS)/*.txt) images/install_torch.py
	@echo "steadykit: downloading and installing TensorFlow and JAX (about 2 GB on disk; silent for a minute or more)"
	$(PIP_INSTALL) --no-compile --require-hashes -r $(LOCKS)/kit.txt -r $(LOCKS)/notebook.txt -r $(LOCKS)/tensorflow.txt -r $(LOCKS)/jax.txt
	@echo "steadykit: downloading and installing PyTorch for the CPU (about 1 GB on disk)"
	@$(BIN)/python images/install_torch.py --index "$(TORCH_INDEX)" $(LOCKS)/torch.txt
	@echo "steadykit: compiling what was installed, so that no measured import does"
	$(COMPILE)
	@touch $@

$(VENV)/.kit: $(VENV)/.frameworks pyproject.toml setup.py kit/version.py $(wildcard native/*)
	@echo "steadykit: building the native clock, installing the kit"
	$(PIP_INSTALL) --no-build-isolation --editable .
	@$(BIN)/python -m pip check
	@touch $@

$(VENV)/.dev: $(VENV)/.frameworks $(LOCKS)/dev.txt
	@echo "steadykit: installing what tests and checks need"
	$(PIP_INSTALL) --require-hashes -r $(LOCKS)/dev.txt
	@touch $@
