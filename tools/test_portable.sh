#!/usr/bin/env bash
# The C++ tests on every path that this machine can take: without AVX2, with Clang, on an emulated ARM.
# The fingerprints of cpp/tests/fingerprint.cpp are the same everywhere. Run by `make test-portable`;
# with CASE=models the fingerprints alone are built and asked for, which takes a third of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
words=${CASE:-}
target=core_tests
[ "$words" != models ] || target=fingerprints

try() { # name, command before the tests, cmake's words
  local build="build/portable-$1" before=$2
  shift 2
  cmake -S . -B "$build" -G Ninja --log-level=WARNING -DHARDWOOD_PYTHON=OFF -DHARDWOOD_TESTS=ON "$@"
  cmake --build "$build" --target "$target" -- --quiet
  echo "== $build"
  $before "$build/$target" "$words"
}

try no-avx2 "" -DHARDWOOD_PORTABLE=ON
# Clang 14 does not let lambdas capture structured bindings, and cannot read GCC 12's <ranges>.
clang=$(command -v clang++-{20,19,18,17,16} clang++ | head -n 1 || true)
if [ -n "$clang" ]; then
  try clang "" -DCMAKE_CXX_COMPILER="$clang"
else
  echo "== clang++ is not installed: left out"
fi
if command -v aarch64-linux-gnu-g++ > /dev/null && command -v qemu-aarch64 > /dev/null; then
  words=${CASE:-models} target=fingerprints # emulated: the fingerprints only
  try arm qemu-aarch64 -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_EXE_LINKER_FLAGS=-static
else
  echo "== aarch64-linux-gnu-g++ and qemu-aarch64 are not installed: left out"
fi
