# Makefile - the doors.  Each target does its own set-up: packages, configuration, build.  The rest is CMake.
PREFIX ?= /usr/local
release := build/release

.DEFAULT_GOAL := help
.PHONY: help build demo test test-quick bench install clean
.NOTPARALLEL:

help: ## this list
	@echo "usage: make TARGET"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r name what; do \
		printf '  %-12s %s\n' "$$name" "$$what"; done

build: ## the library and the command flashsketch, in build/release
	@sh scripts/setup.sh build
	@cmake --preset release -DFS_BUILD_TESTS=OFF -DFS_BUILD_BENCH=OFF --log-level=WARNING
	@cmake --build --preset release

demo: ## compare every sketch on a real matrix: two tables and a picture, in a minute
	@sh scripts/setup.sh demo
	@$(MAKE) --no-print-directory build
	@$(release)/cli/flashsketch demo --output build/demo.svg

test: ## all tests: gcc, clang, and under the address, undefined-behaviour and thread sanitizers
	@sh scripts/setup.sh test
	@sh scripts/test.sh release clang asan tsan

test-quick: ## the tests with gcc alone
	@sh scripts/setup.sh test
	@sh scripts/test.sh release

bench: ## measure the CPU backend against reading the matrix; one JSON object a line
	@sh scripts/setup.sh bench
	@cmake --preset release -DFS_BUILD_BENCH=ON -DFS_BUILD_TESTS=OFF --log-level=WARNING
	@cmake --build --preset release
	@$(release)/bench/fsbench cpu --commit "$$(git describe --always --dirty 2>/dev/null || echo unknown)"

install: build ## install under PREFIX (default /usr/local)
	@cmake --install $(release) --prefix "$(PREFIX)"

clean: ## remove everything that was built
	rm -rf build
