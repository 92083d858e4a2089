#!/usr/bin/env bash
# Formats every C++ and CUDA source with clang-format 14, the version that the checks use.
#   tools/format.sh            rewrites the files
#   tools/format.sh --check    changes nothing; lists what is not formatted and fails
#   tools/format.sh FILE...    rewrites these files only
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
command -v clang-format-14 >/dev/null || "$root/tools/packages.sh" checks
mode=(-i)
[ "${1:-}" = --check ] && { mode=(--dry-run -Werror --ferror-limit=3); shift; }
if [ $# -gt 0 ]; then
  exec clang-format-14 --style=file "${mode[@]}" "$@"
fi
cd "$root"
find core autograd kernels nn optim data tools tests bench -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 --no-run-if-empty -n 20 -P "$(nproc)" clang-format-14 --style=file "${mode[@]}"
