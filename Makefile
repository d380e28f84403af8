# Two commands do everything on a fresh machine: `make run` and `make test`. The work is done by scripts/ and CMake presets.

MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
.DEFAULT_GOAL := help

# A compile with the precompiled torch header takes up to 1.5 GB.
JOBS ?= $(shell python3 -c "import os; m = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30; print(max(1, min(os.cpu_count(), int(m / 1.5))))")
began := $(shell date +%s)
configure = test -e $(1)/build.ninja || cmake --preset $(2)
ctest = python3 scripts/run_tests.py

.PHONY: help setup reference build run test test-long plan-test asan tsan bench lint tidy format clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup:  ## install what is missing (Debian packages, torch in a cached virtual environment)
	@bash scripts/setup.sh

reference: setup  ## install the Python packages that tests compare with (optional)
	@bash scripts/reference.sh

build: setup  ## build/penstock and the tests
	@start=$$(date +%s); $(call configure,build,release) && cmake --build build -j $(JOBS) && echo "build: $$(($$(date +%s) - start)) s"

build/penstock: setup
	@start=$$(date +%s); $(call configure,build,release) && cmake --build build -j $(JOBS) --target penstock && echo "build: $$(($$(date +%s) - start)) s"

run: build/penstock  ## train the demo GPT on real text with a pipeline, two thread ranks
	@bash scripts/run_demo.sh $(began)

test: build  ## every test but the long ones
	@$(ctest) --build build --preset release

test-long: build  ## fuzzing, closed forms of large shapes
	@$(ctest) --build build --preset long

plan-test:  ## build and test the planning half without libtorch
	@bash scripts/setup.sh --without-torch
	@$(call configure,build-plan,plan) && cmake --build build-plan -j $(JOBS) && $(ctest) --build build-plan --preset plan

# Only the tests in which ranks, buffers and parsers do something; a sanitized build of everything takes too long to be used.
sanitized = $(shell for m in base schedule comm memory tokenizer data checkpoint huggingface runtime; do test -d tests/$$m && echo $${m}_test; done)
threaded = $(filter comm_test memory_test tokenizer_test data_test runtime_test,$(sanitized))
asan: setup  ## tests of parsers, communicator, memory and executor under the address and undefined-behaviour sanitizers
	@$(call configure,build-asan,asan) && cmake --build build-asan -j $(JOBS) --target $(sanitized) && $(ctest) --build build-asan --preset asan --only $(sanitized)

tsan: setup  ## tests of communicator, memory, tokenizers and executor under the thread sanitizer
	@$(call configure,build-tsan,tsan) && cmake --build build-tsan -j $(JOBS) --target $(threaded) && $(ctest) --build build-tsan --preset tsan --only $(threaded)

bench: build  ## timed comparisons; prints ratios
	@test -z "$(wildcard bench/*_bench.cc)" || cmake --build build -j $(JOBS) --target benches
	@found=0; for b in build/*_bench; do if [ -x $$b ]; then found=1; echo "== $$b"; $$b || exit 1; fi; done; \
	  if [ $$found = 0 ]; then echo "make bench: there is no bench in this build" >&2; exit 1; fi

lint:  ## format, include table, hygiene (a few seconds)
	@bash scripts/lint.sh

tidy: build  ## clang-tidy over src/ (minutes)
	@bash scripts/setup.sh --tools && run-clang-tidy -quiet -p build 'src/.*\.cc$$'

format:  ## clang-format in place
	@bash scripts/lint.sh --fix

clean:  ## remove the build folders
	rm -rf build build-debug build-asan build-tsan build-plan
