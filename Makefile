# The verbs of the project. `make demo` and `make test` each work first on a fresh clone with
# Python 3.11 or newer, a C++20 compiler, make and a package index.
.DEFAULT_GOAL := help
.PHONY: help build demo test test-cpp test-python lint format bench bench-boosting defaults \
        docs picture sanitize test-portable wheel sdist compat bench-history fuzz hunt clean bench-attacks bench-distance bench-families bench-threads bench-forest bench-categories bench-census

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BUILD  := build/package
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
SOURCES := CMakeLists.txt pyproject.toml README.md LICENSE \
           $(shell find cpp/hardwood cpp/bind src -type f -not -name '*.pyc')
CPP_FILES = git ls-files -co --exclude-standard 'cpp/*.hpp' 'cpp/*.cpp'
CMAKE   = PATH="$(CURDIR)/$(BIN):$$PATH" cmake
# Python compiles what is imported when it is; pip would compile all of scipy and pandas first.
PIP     = PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-compile
INSTALL = $(PIP) --no-build-isolation --config-settings=build-dir=$(BUILD) \
          --config-settings=cmake.define.HARDWOOD_TESTS=ON
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

help: ## Show the verbs
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) "scikit-build-core>=0.11" "nanobind>=2.9" "setuptools-scm>=8" "cmake>=3.22" ninja
	@touch $@

# What the package needs comes from the index while the compiler runs: pip mostly waits.
# Not editable: tests see what users install, and a second build only compiles what changed.
$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	@$(BIN)/python tools/requirements.py cli report > $(VENV)/requirements.txt
	$(PIP) -r $(VENV)/requirements.txt & libraries=$$!; \
	$(INSTALL) --no-deps . && wait $$libraries
	@touch $@

# From this tree, so that no index is asked for a package of our name; nothing is compiled twice.
$(VENV)/.%-tools: pyproject.toml | $(VENV)/.built
	$(INSTALL) ".[$*]"
	@touch $@

build: $(VENV)/.built ## Make .venv, build hardwood and install it there

demo: build ## Train natural and robust models, attack and certify them, write the page of an audit
	@$(BIN)/hardwood demo

test: test-cpp test-python ## All tests

# Linked with the objects of the package, so that the core is compiled once.
CASE ?=
test-cpp: build ## C++ tests; CASE="words of a name" runs those cases
	$(CMAKE) --build $(BUILD) --target core_tests -- --quiet
	$(BUILD)/core_tests "$(CASE)"

# One seed for hashes, so that all processes collect the same names of tests.
test-python: build $(VENV)/.test-tools ## Python tests, documentation examples included
	PYTHONHASHSEED=0 $(BIN)/python -m pytest tests -n $(JOBS) --dist loadfile
	$(BIN)/python -m pytest --doctest-modules --pyargs hardwood -p no:cacheprovider -q

lint: build $(VENV)/.lint-tools ## ruff, mypy, import-linter, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p hardwood
	$(BIN)/lint-imports
	$(CPP_FILES) | xargs $(BIN)/clang-format --dry-run --Werror

format: $(VENV)/.lint-tools ## Format Python and C++
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(CPP_FILES) | xargs $(BIN)/clang-format -i

bench: build ## Times against scikit-learn's; fails when a target is missed
	$(BIN)/python benchmarks/tree.py

bench-boosting: build $(VENV)/.bench-tools ## Boosting against XGBoost and LightGBM: time, memory, accuracy
	$(BIN)/python benchmarks/boosting.py

bench-history: build $(VENV)/.bench-tools ## Run the quicker benchmarks and compare their ratios with those of earlier runs
	rm -f build/bench/tree.json build/bench/forest.json
	-$(BIN)/python benchmarks/tree.py
	-$(BIN)/python benchmarks/forest.py
	$(BIN)/python benchmarks/history.py tree forest

bench-threads: build ## Two threads against one, alone and beside busy processes
	$(BIN)/python benchmarks/threads.py

bench-categories: build $(VENV)/.bench-tools ## Categories against LightGBM and scikit-learn; HARDWOOD_DATA names the data
	$(BIN)/python benchmarks/categories.py

bench-census: build $(VENV)/.bench-tools ## A pipeline with categories and whole numbers: loading, certificates, distances
	$(BIN)/python benchmarks/census.py

bench-forest: build $(VENV)/.bench-tools ## Forests against scikit-learn's and XGBoost's: time, accuracy
	$(BIN)/python benchmarks/forest.py

defaults: build ## Boosting with nothing set but eps, on twelve tables; HARDWOOD_DATA names the directory of the data
	@$(BIN)/python benchmarks/paper/defaults.py

bench-attacks: build $(VENV)/.bench-tools ## Attacks against the truth, the paper and ART; HARDWOOD_DATA names the data
	$(BIN)/python benchmarks/attacks.py

bench-distance: build $(VENV)/.bench-tools ## Exact distances against Veritas and HiGHS; HARDWOOD_DATA, HARDWOOD_PROTOTYPES
	$(BIN)/python benchmarks/peers/distance.py

bench-families: build ## Exact distances on eleven families of models, of which five chose no constant
	$(BIN)/python benchmarks/families.py

docs: build $(VENV)/.docs-tools ## The documentation as HTML in build/docs, gallery run; broken links are errors
	$(BIN)/sphinx-build --fail-on-warning --nitpicky --quiet docs build/docs
	@echo "build/docs/index.html"

picture: build $(VENV)/.docs-tools ## The README's picture, drawn again
	$(BIN)/python tools/picture.py

SANITIZERS ?= address,undefined thread
sanitize: $(VENV)/.tools ## C++ tests under the address, undefined-behaviour and thread sanitizers
	for kind in $(SANITIZERS); do \
	  $(CMAKE) -S . -B build/sanitize-$$kind -G Ninja --log-level=WARNING \
	    -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O1 -DHARDWOOD_PYTHON=OFF -DHARDWOOD_TESTS=ON \
	    -DHARDWOOD_CHECKS=ON -DHARDWOOD_SANITIZE=$$kind && \
	  $(CMAKE) --build build/sanitize-$$kind --target core_tests -- --quiet && build/sanitize-$$kind/core_tests || exit 1; \
	done

# Each in a build of its own; what is not installed is left out, and said.
test-portable: $(VENV)/.tools ## The same models without AVX2, with Clang and on an emulated ARM
	PATH="$(CURDIR)/$(BIN):$$PATH" CASE="$(CASE)" tools/test_portable.sh

wheel: $(VENV)/.tools ## Wheels in dist/, each tried where there is no compiler
	$(BIN)/python tools/wheel.py

sdist: $(VENV)/.tools ## The source distribution in dist/, built again from its declared requirements alone
	$(BIN)/python tools/sdist.py

compat: wheel ## Tests with the oldest and the newest libraries, each in an environment of its own
	$(BIN)/python tools/compat.py

FUZZ_SECONDS ?= 600
FUZZ_INPUTS ?= 1000000
FUZZ_SEED ?= 0
fuzz: build $(VENV)/.test-tools ## Broken model files and reports of each format: FUZZ_INPUTS a format, or FUZZ_SECONDS in all
	$(BIN)/python tests/fuzz/fuzz_model_files.py --seconds $(FUZZ_SECONDS) --inputs $(FUZZ_INPUTS) --seed $(FUZZ_SEED)

HUNT_SECONDS ?= 600
hunt: build $(VENV)/.test-tools ## Every answer about random small models of every library, against enumeration
	$(BIN)/python tests/hunt/hunt.py --seconds $(HUNT_SECONDS)

clean: ## Remove everything that was built
	rm -rf $(VENV) build dist
