# Makefile - the commands of README.md.  Each target installs its packages, configures and builds; the rest is CMake.
PREFIX ?= /usr/local
# What `make setup` installs for: build, demo, bench, test, python, packages, docs or lint.
FOR ?= test
# SETUP=no: no target installs packages.
SETUP ?= yes
# For which GPUs the CUDA plugin is built: this (machine's), test, all, none, or a list (scripts/cuda.sh).
CUDA ?=
release := build/release
setup := $(MAKE) --no-print-directory setup FOR=

.DEFAULT_GOAL := help
.PHONY: help setup build cuda demo docs wheels release test test-quick test-python test-packages test-docs lint fuzz \
	test-device bench bench-cuda bench-grass bench-mpi bench-quality bench-randnla bench-solve install clean
.NOTPARALLEL:

help: ## this list
	@echo "usage: make TARGET"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r name what; do \
		printf '  %-13s %s\n' "$$name" "$$what"; done

setup: ## install the Debian packages of the tests, or FOR=build|demo|bench|python|packages|docs|lint; other targets do it themselves
	@[ "$(SETUP)" = no ] || sh scripts/setup.sh $(FOR)

build: ## the library and the command flashsketch, in build/release; the CUDA plugin for this machine's GPU, if any
	@$(setup)build
	@options=$$(sh scripts/cuda.sh "$(or $(CUDA),this)") && \
		cmake --preset release $$options -DFS_BUILD_TESTS=OFF -DFS_BUILD_BENCH=OFF --log-level=WARNING
	@cmake --build --preset release

cuda: ## the same with the CUDA plugin for every GPU (make install CUDA=all installs that)
	@$(MAKE) --no-print-directory build CUDA=all

demo: ## compare every sketch on a real matrix: two tables and a picture, in a minute
	@$(setup)demo
	@$(MAKE) --no-print-directory build
	@$(release)/cli/flashsketch demo --output build/demo.svg

docs: ## the site, in build/site: the documents, the headers' and Python's reference, with a search
	@$(setup)docs
	@$(MAKE) --no-print-directory build
	@sh scripts/docs.sh || [ $$? = 77 ]

wheels: ## Python wheels for any Linux, in dist: this processor, others with a cross compiler, the CUDA plugin with nvcc
	@$(setup)packages
	@CUDA="$(CUDA)" sh scripts/wheels.sh

release: ## check that a release can be made, build all its packages into dist, and print what is left to do by hand
	@$(setup)packages
	@sh scripts/release.sh

test: ## all tests, twenty minutes: gcc, clang, three sanitizers, Python, the packages, the site
	@$(setup)test
	@$(setup)packages
	@CUDA="$(CUDA)" sh scripts/test.sh release clang asan tsan aarch64 python packages docs

test-quick: ## the tests with gcc alone
	@$(setup)test
	@CUDA="$(CUDA)" sh scripts/test.sh release

lint: ## check the sources: structure, layout, clang-tidy, ruff, mypy (scripts/lint.sh --fix repairs layout)
	@$(setup)lint
	@sh scripts/lint.sh --install || [ $$? = 77 ]

fuzz: ## the fuzzers of the readers of files, ten minutes each (SECONDS=...); needs clang
	@$(setup)test
	@sh scripts/fuzz.sh $(or $(SECONDS),600)

test-python: ## the tests of the Python package, installed into a virtual environment
	@$(setup)python
	@sh scripts/test.sh python

test-packages: ## the wheel, the Debian packages, the tarball and the bindings, built and used where they are installed
	@$(setup)packages
	@sh scripts/test.sh packages

test-docs: ## the site, every page opened in Chromium
	@$(setup)docs
	@sh scripts/test.sh docs

test-device: ## the tests of the CUDA backend on this machine's GPU; replaces tests/device/RECORD.md
	@sh tests/device/run

bench: ## measure the CPU backend against reading the matrix; one JSON object a line
	@$(setup)bench
	@options=$$(sh scripts/cuda.sh "$(or $(CUDA),this)") && \
		cmake --preset release $$options -DFS_BUILD_BENCH=ON -DFS_BUILD_TESTS=OFF --log-level=WARNING
	@cmake --build --preset release
	@$(release)/bench/fsbench cpu --commit "$$(git describe --always --dirty 2>/dev/null || echo unknown)"

bench-cuda: ## measure the CUDA backend on this machine's GPU, into bench/results/GPU/cuda.jsonl
	@sh scripts/bench_cuda.sh

bench-grass: ## measure projections of gradients on this machine's GPU, into bench/results/GPU/grass.jsonl
	@sh scripts/bench_cuda.sh grass

bench-mpi: ## measure MPI ranks against threads: 2 ranks, or RANKS="1 2 4 8"; one JSON object a line
	@$(setup)test
	@cmake --preset release -DFS_CUDA=OFF -DFS_BUILD_MPI=ON -DFS_BUILD_BENCH=ON -DFS_BUILD_TESTS=OFF --log-level=WARNING
	@cmake --build --preset release --target fsbench_mpi >&2
	@for ranks in $(or $(RANKS),2); do OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none \
		mpirun -n $$ranks $(release)/bench/fsbench_mpi \
		--commit "$$(git describe --always --dirty 2>/dev/null || echo unknown)" || exit 1; done

bench-quality: ## embedding errors on hard inputs over a Gaussian's, into bench/results/CPU and docs/quality.md (SECONDS=1800)
	@sh scripts/bench_quality.sh $(or $(SECONDS),1800)

bench-randnla: ## the paper's RandNLA grid on this machine's GPU, continued in bench/results/GPU/randnla.jsonl (SECONDS=360)
	@sh scripts/bench_randnla.sh $(or $(SECONDS),360)

bench-solve: ## least squares, QR, SVD beside LAPACK's, NumPy's and others, into bench/results/MACHINE (SECONDS=600)
	@sh scripts/bench_solve.sh $(or $(SECONDS),600)

install: build ## install under PREFIX (default /usr/local); says what to set where the loader does not search PREFIX
	@sh scripts/install.sh $(release) "$(PREFIX)"

clean: ## remove everything that was built
	rm -rf build
