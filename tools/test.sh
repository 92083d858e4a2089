#!/usr/bin/env bash
# Installs what the tests need, builds everything, and runs all tests. Arguments go to ctest:
#   tools/test.sh                 everything
#   tools/test.sh -R softmax      the tests with softmax in their name
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/packages.sh build data tests
options=(-DTAPEGRAD_BUILD_TESTS=ON)
# A first build leaves the benchmarks out; a build folder that has them keeps them.
[ -f build/release/build.ninja ] || options+=(-DTAPEGRAD_BUILD_BENCH=OFF)
cmake --preset release "${options[@]}"
cmake --build --preset release
cd build/release
exec ctest --output-on-failure -j "$(nproc)" "$@"
