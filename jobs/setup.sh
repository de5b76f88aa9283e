#!/usr/bin/env bash
# Installs what breccia needs on a Debian or Ubuntu machine, and nothing when all is there. Says what it does. With --browser chromium too, with --cluster Slurm.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else
    echo "setup: need root for: $*" >&2
    echo "setup: ask an administrator to install: ${missing[*]}" >&2
    exit 1
  fi
}

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# Compiler and MPI, parallel HDF5, bindgen's libclang, the tools that tests look into files with, and Mesa for pictures without a display.
wanted=(build-essential pkg-config openmpi-bin libopenmpi-dev libhdf5-openmpi-dev libclang-dev hdf5-tools python3-venv libegl1 libgl1 libxrender1)
# Only for the test that opens a report in a real browser, and large: asked for by `make setup-browser`.
[ "${1:-}" = --browser ] && wanted+=(chromium)
# Only for `make cluster`.
[ "${1:-}" = --cluster ] && wanted+=(slurm-wlm munge iproute2 util-linux procps)
missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${wanted[@]}"; do installed "$package" || missing+=("$package"); done
  if [ ${#missing[@]} -gt 0 ]; then
    echo "setup: installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  fi
else
  for tool in mpicc h5dump pkg-config; do
    command -v "$tool" >/dev/null || { echo "setup: no dpkg here; please install Open MPI, parallel HDF5, libclang and pkg-config" >&2; exit 1; }
  done
fi

# Where rustup puts cargo: not on the PATH of a shell that was open before it came.
PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
wanted_rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml | head -1)
if ! command -v cargo >/dev/null; then
  echo "setup: installing Rust"
  if apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
    missing=(rustup)
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq rustup >/dev/null && rustup default stable
  elif command -v curl >/dev/null; then
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
  else
    echo "setup: please install Rust $wanted_rust or newer (https://rustup.rs)" >&2
    exit 1
  fi
fi
found_rust=$(cargo --version | cut -d' ' -f2)
if [ "$(printf '%s\n' "$wanted_rust" "$found_rust" | sort -V | head -1)" != "$wanted_rust" ]; then
  echo "setup: $(command -v cargo) is Rust $found_rust, breccia needs $wanted_rust or newer" >&2
  if command -v rustup >/dev/null; then
    echo "setup: run \"rustup update stable && rustup default stable\" and try again" >&2
  else
    echo "setup: remove it or put a newer one before it on the PATH: https://rustup.rs installs one in ~/.cargo/bin" >&2
  fi
  exit 1
fi

# Python is for pictures and for the tests that open files with VTK; breccia itself does not need it.
if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c 'import vtk, h5py, numpy' 2>/dev/null; then
  echo "setup: making .venv with VTK, h5py and numpy (pictures and file tests)"
  if python3 -m venv .venv && .venv/bin/pip install -q vtk h5py numpy; then :; else
    echo "setup: no Python with VTK: pictures and the tests that need it are skipped" >&2
  fi
fi
