#!/usr/bin/env bash
# Installs the Debian packages that a part of the project needs, and nothing when they are there already
# (so it works offline from then on).
#
#   tools/packages.sh SET...      sets: build data tests bench emulated checks
#   tools/packages.sh --list SET...   prints the names, one a line
set -euo pipefail

packages_of() {
  case "$1" in
    build) echo g++ cmake ninja-build ca-certificates libeigen3-dev zlib1g-dev libstb-dev \
                libyaml-cpp-dev libcli11-dev nlohmann-json3-dev libfmt-dev ;;
    data) echo dataset-fashion-mnist ;;
    tests) echo catch2 python3 ;;
    bench) echo libbenchmark-dev ;;
    emulated) echo libboost-context-dev ;;
    checks) echo clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 python3 shellcheck git ;;
    *) echo "packages.sh: no set '$1' (build, data, tests, bench, emulated, checks)" >&2; return 1 ;;
  esac
}

installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

list=no
[ "${1:-}" = --list ] && { list=yes; shift; }
[ $# -gt 0 ] || { sed -n '2,6p' "$0" >&2; exit 2; }
wanted=()
for set_name in "$@"; do
  names=$(packages_of "$set_name")
  read -ra names <<<"$names"
  wanted+=("${names[@]}")
done
if [ $list = yes ]; then printf '%s\n' "${wanted[@]}"; exit; fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "packages: this is not a Debian system; what is needed goes here by the names: ${wanted[*]}"
  exit 0
fi
missing=()
for package in "${wanted[@]}"; do
  installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all ${#wanted[@]} are there ($*)"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "packages: run this as root, or install sudo: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "packages: installing ${missing[*]}"
# An update that fails is no reason to stop: the lists at hand may do.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
"${apt[@]}" update || echo "packages: apt-get update failed, going on with the lists at hand" >&2
if ! "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null; then
  echo "packages: apt-get could not install ${missing[*]} (no network?)" >&2
  exit 1
fi
