#!/usr/bin/env bash
# Brings CUDA's headers, and nothing else of it, for -DTAPEGRAD_CUDA=EMULATED on a machine without the toolkit:
# downloads NVIDIA's Python packages of these versions and unpacks their headers.
#
#   tools/cuda_headers.sh [FOLDER]     default: build/cuda_headers, where CMake looks
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly packages=(nvidia-cuda-runtime==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85)
folder=${1:-build/cuda_headers}
[ -f "$folder/cuda_runtime.h" ] && { echo "cuda_headers: they are in $folder"; exit; }
for program in python3 unzip; do
  command -v $program >/dev/null || { echo "cuda_headers: needs $program" >&2; exit 1; }
done

downloads=$(mktemp -d)
trap 'rm -rf "$downloads"' EXIT
python3 -m pip download --quiet --no-deps --dest "$downloads" "${packages[@]}"
for wheel in "$downloads"/*.whl; do
  unzip -q -o "$wheel" 'nvidia/*/include/*' -d "$downloads/unpacked"
done
mkdir -p "$folder"
cp -r "$downloads"/unpacked/nvidia/*/include/. "$folder"
# Of CUDA's C++ libraries, which nvcc finds in a folder of their own, one header is included by cuda_fp16.h.
if [ -d "$folder/cccl" ]; then
  cp -r "$folder/cccl/nv" "$folder/"
  rm -r "$folder/cccl"
fi
for header in cuda_runtime.h crt/host_defines.h cuda_fp16.h nv/target; do
  [ -f "$folder/$header" ] || { echo "cuda_headers: the packages hold no $header" >&2; exit 1; }
done
echo "cuda_headers: $(du -sh "$folder" | cut -f1) in $folder"
