# `make demo` and `make test` need only python3 with venv and pip. Everything goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# torch's default wheel pulls gigabytes of CUDA; this build runs on the CPU
TORCH := torch==2.13.0
PYTEST_ARGS ?=

.PHONY: demo test check format lint types deep system picture guide reproduction bench clean

demo: $(VENV)/.base
	$(BIN)/pac-wrap demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist loadfile $(PYTEST_ARGS)

check: lint types
	$(MAKE) test PYTEST_ARGS="--cov --cov-report=term-missing $(PYTEST_ARGS)"

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# optional: lets the tests wrap a real torch module instead of skipping
deep: $(VENV)/.deep

# optional: a real browser, database and PDF reader for the tests that use them (Debian's packages, as root)
system:
	apt-get update -qq && apt-get install -y -qq chromium chromium-driver postgresql poppler-utils

# the pictures and outputs in the documents, all drawn from real runs; needs PAC_WRAP_DATA and chromium
picture: $(VENV)/.dev
	$(BIN)/pac-wrap demo --svg docs/images/demo.svg
	$(BIN)/python docs/guide/pictures.py

guide: $(VENV)/.dev
	$(BIN)/python docs/guide/run.py

# the paper's experiments in full, about an hour; reads PAC_WRAP_DATA or downloads
reproduction: $(VENV)/.deep
	$(BIN)/pac-wrap reproduce all --out results
	$(BIN)/python docs/reproduction/build.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/violation.py --json benchmarks/violation.json
	$(BIN)/python benchmarks/calibrate.py --json benchmarks/calibrate.json

clean:
	rm -rf $(VENV)

# A stamp per set of packages: a second run installs nothing, a changed pyproject.toml installs again.
$(VENV)/.base: pyproject.toml | $(BIN)/pip
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/pip
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@ $(VENV)/.base

$(VENV)/.deep: | $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check "$(TORCH)"
	touch $@

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
