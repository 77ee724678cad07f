# The verbs of the project. `make demo` and `make test` each work first on a fresh clone with
# Python 3.11 or newer, a C++20 compiler, make and a package index.
.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-cpp test-python lint format bench docs sanitize fuzz clean

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
SOURCES := CMakeLists.txt pyproject.toml README.md $(shell find cpp/hardwood cpp/bind src -type f -not -name '*.pyc')
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

help: ## Show the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.11" "nanobind>=2.9" "cmake>=3.22" ninja
	touch $@

# Not editable: tests see what users install, and a second build only compiles what changed.
$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation ".[cli,report]"
	touch $@

$(VENV)/.test-tools: $(VENV)/.built pyproject.toml
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation ".[test]"
	touch $@

$(VENV)/.lint-tools: $(VENV)/.built pyproject.toml
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation ".[lint]"
	touch $@

$(VENV)/.bench-tools: $(VENV)/.built pyproject.toml
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation ".[bench]"
	touch $@

build: $(VENV)/.built ## Make .venv, build and install hardwood in it

demo: build ## Train a natural and a robust tree, attack and certify both, draw the boundaries
	$(BIN)/hardwood demo

test: test-cpp test-python ## All tests

test-cpp: $(VENV)/.tools ## C++ unit tests
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/tests -G Ninja -DHARDWOOD_PYTHON=OFF -DHARDWOOD_TESTS=ON -DHARDWOOD_CHECKS=ON
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/tests
	build/tests/core_tests

test-python: $(VENV)/.test-tools ## Python tests and doctests
	$(BIN)/python -m pytest tests
	$(BIN)/python -m pytest --doctest-modules --pyargs hardwood -p no:cacheprovider -q

lint: $(VENV)/.lint-tools ## ruff, mypy, import-linter, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p hardwood
	$(BIN)/lint-imports
	git ls-files -co --exclude-standard 'cpp/*.hpp' 'cpp/*.cpp' | xargs $(BIN)/clang-format --dry-run --Werror

format: $(VENV)/.lint-tools ## Format Python and C++
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	git ls-files -co --exclude-standard 'cpp/*.hpp' 'cpp/*.cpp' | xargs $(BIN)/clang-format -i

sanitize: $(VENV)/.tools ## C++ tests under the address, undefined-behaviour and thread sanitizers
	for kind in address,undefined thread; do \
	  PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/sanitize-$$kind -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	    -DHARDWOOD_PYTHON=OFF -DHARDWOOD_TESTS=ON -DHARDWOOD_CHECKS=ON -DHARDWOOD_SANITIZE=$$kind && \
	  PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/sanitize-$$kind && build/sanitize-$$kind/core_tests || exit 1; \
	done

FUZZ_SECONDS ?= 600
fuzz: $(VENV)/.test-tools ## Broken model files, a million or ten minutes of them
	$(BIN)/python tests/fuzz/fuzz_model_files.py --seconds $(FUZZ_SECONDS)

clean: ## Remove everything that was built
	rm -rf $(VENV) build
