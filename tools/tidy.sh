#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy over the library's own sources. Those of kernels/cpu are left
# out: each takes most of a minute there, because Eigen and the loops unrolled over it are read whole.
#   tools/tidy.sh [FILE...]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# -gt 0 ]; then files=("$@"); else
  cd "$root"
  mapfile -t files < <(find core autograd nn optim data -name '*.cpp' | sort)
fi
command -v clang-tidy-14 >/dev/null || "$root/tools/packages.sh" checks
# A build folder of its own tells clang-tidy the flags of clang; nothing is built there.
cmake -S "$root" -B "$root/build/tidy" -G Ninja -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DTAPEGRAD_BUILD_TESTS=OFF -DTAPEGRAD_BUILD_BENCH=OFF \
  -DTAPEGRAD_BUILD_TOOLS=OFF -DTAPEGRAD_PRECOMPILE=OFF >/dev/null
printf '%s\0' "${files[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy-14 -p "$root/build/tidy" --quiet \
  2> >(grep -v "warnings\? generated\.$" >&2)
echo "clang-tidy: ${#files[@]} files"
