# breccia: everything a new user needs. `make help` lists the targets.

SHELL := /bin/bash
RUN_AS_ROOT := OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Ranks are not bound to cores: on a machine with other work a bound rank waits for its core while others are free.
MPIRUN := $(RUN_AS_ROOT) mpirun --oversubscribe --bind-to none
# Where rustup puts cargo; a shell that was open before `make setup` does not have it on its PATH.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
BRECCIA := target/release/breccia

.PHONY: help setup setup-browser setup-cluster build demo test cluster lint bench soak clean

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: ## Install what is missing: compiler tools, Open MPI, parallel HDF5, libclang, Rust, Python with VTK for pictures
	@jobs/setup.sh

setup-browser: ## Install chromium, with which the tests open a report (a download of 124 MB, 414 MB on the disk)
	@jobs/setup.sh --browser

setup-cluster: ## Install Slurm, munge and iproute2, with which `make cluster` makes a cluster of two nodes on this machine
	@jobs/setup.sh --cluster

build: setup
	cargo build --release

demo: build ## A tamping machine works in ballast on 2 ranks, with a report at the end (two to three minutes after the build)
	$(MPIRUN) -n 2 $(BRECCIA) run inputs/tamping/demo-bed.toml --out out/tamping/demo-bed
	$(MPIRUN) -n 2 $(BRECCIA) run inputs/tamping/demo-deposit.toml --out out/tamping/demo-deposit
	$(MPIRUN) -n 2 $(BRECCIA) run inputs/tamping/demo.toml --out out/tamping/demo
	$(BRECCIA) report out/tamping/demo
	@echo "Report:   out/tamping/demo/report.html (open it in a browser: plots, pictures, a 3D view that plays)"
	@echo "ParaView: out/tamping/demo/bodies.vtkhdf and contacts.vtkhdf (force chains)"
	@echo "Numbers:  out/tamping/demo/machines.csv, series.csv and summary.json"
	@echo "More:     docs/tamping.md, and the other cases in inputs/"

test: setup lint ## All tests: units, physics, ranks, case files, files read by VTK
	cargo build --bins
	@jobs/test.sh

lint:
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets -- -D warnings

bench: build ## Measure the sweep, detection, a step, scaling, and rapier beside it on this machine: some twenty-five minutes
	cargo bench --bench detection
	cargo bench --bench machine
	.venv/bin/python jobs/performance.py

soak: build ## The long versions of the tests: 100,000 fuzzed case files, stones falling until they rest
	PROPTEST_RNG_SEED=$$RANDOM BRECCIA_FUZZ=100000 BRECCIA_SOAK=1 $(RUN_AS_ROOT) cargo test --release --workspace

cluster: build ## The scripts of jobs/slurm on a real Slurm of two nodes in namespaces, with accidents; as root
	@jobs/cluster/test.sh

clean: ## Remove builds and results
	rm -rf target out
