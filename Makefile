# Two commands do all the set-up on a machine with Python, g++ and make:
#   make demo    environment, generate, build, coverage, train a CNN on device `musa`
#   make test    the same set-up where it is missing, then every test
# TORCH=2.14.1 takes another PyTorch; each version has its own environment and build folder.
DEFAULT_TORCH := 2.13.0
TORCH   ?= $(DEFAULT_TORCH)
PYTHON  ?= python3
VENV    ?= $(if $(filter $(DEFAULT_TORCH),$(TORCH)),.venv,.venv-torch$(TORCH))
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed-torch$(TORCH)
JOBS    ?= $(shell nproc)
RELEASES ?= 2.9.1 2.11.0 2.13.0 2.14.1 2.15.0
SANITIZERS ?= address undefined thread
# What a card may be like, or how strictly the stand-in watches: docs/toolkit.md. mp_21 lacks dtypes that tests of
# gradients compute in; tests/ops/test_profiles.py holds it.
PROFILES ?= mp_22 asynchronous protected one_device
PROFILE_mp_21 := MUSA_ARCH=mp_21
PROFILE_mp_22 := MUSA_ARCH=mp_22
PROFILE_asynchronous := MUSA_LAUNCH_BLOCKING=0
PROFILE_protected := TORCH_MUSA_HOST_PROTECT=mprotect PYTORCH_NO_MUSA_MEMORY_CACHING=1
PROFILE_one_device := TORCH_MUSA_HOST_DEVICES=1
# ThreadSanitizer knows no addresses that newer kernels choose at random; where setarch may not switch that off, as is.
FIXED_ADDRESSES := $(shell setarch $$(uname -m) -R true 2>/dev/null && echo setarch $$(uname -m) -R)
CXX_SOURCES = git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' '*.muh'

.PHONY: help env build demo test profiles gpu-test gpu-bench truth mutants sanitize bench lint format coverage images versions clean
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==$(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

env: $(STAMP) ## the environment alone

build: $(STAMP) ## generate and compile
	$(BIN)/opgen build --jobs $(JOBS)

demo: build ## everything, ending in a network trained on device musa
	$(BIN)/opgen coverage
	$(BIN)/python examples/train_digits.py

test: $(STAMP) ## every test
	$(BIN)/opgen build --jobs $(JOBS) --with-tests
	$(BIN)/python -m pytest -n $(JOBS) tests

profiles: build $(PROFILES:%=profile-%) ## the tests of operators and device on older chips, asynchronously, with memory out of bounds, with one device

profile-%: $(STAMP)
	env $(PROFILE_$*) $(BIN)/python -m pytest -q -n $(JOBS) tests/ops tests/runtime

mutants: $(STAMP) ## seed faults into a copy of the tree: do the tests find each? renews docs/mutants.md
	$(BIN)/python tests/mutants/run.py --jobs $(JOBS) --write

sanitize: $(STAMP) ## the toolkit's C++ tests under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer
	@mkdir -p build; set -e; for kind in $(SANITIZERS); do echo "== $$kind"; \
	  $(BIN)/cmake -G Ninja -S . -B build/sanitize-$$kind -DOPGEN_SANITIZE=$$kind \
	    -DPython3_EXECUTABLE=$(CURDIR)/$(BIN)/python -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja > build/sanitize-$$kind.log; \
	  $(BIN)/cmake --build build/sanitize-$$kind -j $(JOBS); \
	  $(FIXED_ADDRESSES) $(BIN)/ctest --test-dir build/sanitize-$$kind --output-on-failure; done

bench: build ## the speed figures, each beside what it is compared with
	$(BIN)/python benchmarks/bench.py

gpu-test: ## on a machine with an NVIDIA GPU: build the target cuda, the tests of operators and device on it (docs/targets.md)
	$(PYTHON) tests/gpu/run.py

gpu-bench: ## on such a machine, with that build: musa beside native cuda, each figure beside its target (docs/gpu_benchmarks.md)
	$(PYTHON) benchmarks/gpu.py

truth: $(STAMP) ## run every operator, then the judge; renew coverage_report/ (goes on where it was interrupted)
	$(BIN)/opgen truth --jobs $(JOBS)
	test ! -d tests/judge || $(BIN)/python -m pytest -q -n $(JOBS) tests/judge --judge all || test $$? -eq 1
	$(BIN)/opgen coverage --write coverage_report --html coverage_report/index.html

coverage: $(STAMP) ## renew coverage_report/, and write its page (index.html)
	$(BIN)/opgen coverage --write coverage_report --html coverage_report/index.html

images: coverage ## the pictures of that page in docs/images (needs chromium and chromium-driver)
	$(BIN)/python docs/images/take.py coverage_report/index.html

versions: $(STAMP) ## generate and syntax-check for every supported PyTorch; renew docs/versions.md
	$(BIN)/opgen versions $(RELEASES) --jobs $(JOBS) --write docs/versions.md

lint: $(STAMP) ## ruff, mypy --strict, clang-format
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[lint]'
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(CXX_SOURCES) | xargs $(BIN)/clang-format --dry-run --Werror

format: $(STAMP) ## rewrite sources in the project's format
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[lint]'
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(CXX_SOURCES) | xargs $(BIN)/clang-format -i

clean: ## remove what was built and generated; the environment stays
	rm -rf build generated/torch*
