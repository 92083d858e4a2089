#!/usr/bin/env bash
# From a bare Debian 12 to a model trained on real images: installs the build packages and the data set,
# builds a release, trains on 60,000 pictures of clothes, tests on 10,000 others, and names a few of those.
#   tools/quickstart.sh           about a minute of training on 2 cores
#   tools/quickstart.sh --short   a few hundred steps, to see that all of it works
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$PWD" = "$called_from" ] || echo "quickstart: what is named below lies in $PWD"

overrides=(run=quickstart)
case "${1:-}" in
  "") ;;
  --short) overrides=(run=quickstart-short max_steps=300) ;;
  *) echo "usage: tools/quickstart.sh [--short]" >&2; exit 2 ;;
esac

tools/packages.sh build data
options=()
# A first build leaves out tests and benchmarks; a build folder that has them keeps them.
[ -f build/release/build.ninja ] || options=(-DTAPEGRAD_BUILD_TESTS=OFF -DTAPEGRAD_BUILD_BENCH=OFF)
cmake --preset release "${options[@]}" >/dev/null
cmake --build --preset release --target tapegrad_program

tapegrad=build/release/tools/tapegrad
"$tapegrad" train tools/configs/fashion_mnist.yaml "${overrides[@]}"
"$tapegrad" predict "outputs/${overrides[0]#run=}/best.safetensors" --samples 5
echo "quickstart: done. $tapegrad --help and README.md tell what else it can do."
