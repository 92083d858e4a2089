#!/usr/bin/env bash
# Compiles every header of the library alone: each includes what it uses, and a public one needs neither
# Eigen nor a flag. Those of kernels/cpu are for people who write kernels and get both; those of kernels/simt need
# CUDA's headers and are left to the emulated build.
#   tools/headers.sh [COMPILER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
compiler=${1:-g++}
include=$(mktemp -d)
trap 'rm -rf "$include"' EXIT
mkdir "$include/tapegrad"
for folder in core autograd kernels nn optim data; do ln -s "$PWD/$folder" "$include/tapegrad/"; done
ln -s "$PWD/tools/tapegrad.h" "$include/tapegrad/"

compile() {
  local flags=(-std=c++20 -fsyntax-only -Wall -Wextra -Werror "-I$include")
  case $1 in
    kernels/cpu/*avx512*) flags+=(-isystem /usr/include/eigen3 -march=x86-64-v4 -w) ;;  # g++ 12 warns in its own header
    kernels/cpu/*) flags+=(-isystem /usr/include/eigen3 -march=native) ;;
  esac
  "$compiler" "${flags[@]}" -x c++ - <<<"#include \"tapegrad/$1\"" || { echo "$1 does not compile alone" >&2; return 1; }
}
export -f compile
export compiler include
mapfile -t headers < <({ find core autograd kernels nn optim data -name '*.h' -not -path 'kernels/simt/*' -not -path 'kernels/cuda/*' -not -path 'core/cuda/runtime.h'; echo tapegrad.h; } | sort)
# shellcheck disable=SC2016  # $1 is for the inner shell
printf '%s\0' "${headers[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'compile "$1"' _
echo "headers: ${#headers[@]} compile alone"
