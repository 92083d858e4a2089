#!/usr/bin/env python3
"""Compiles every .cu of kernels/cuda with nvcc and reads what ptxas says of the machine code.

    tools/check_cuda.py [-j JOBS] [FILE.cu ...]

Fails on a spilled register, on a stack frame (an array that is indexed at run time), and on a kernel
that needs more registers than its budget; with what it found, per kernel and architecture. Exit
status 77 where there is no nvcc. Nothing is run: there need be no GPU.
"""

import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURES = ["sm_80", "sm_90"]
FLAGS = ["-std=c++20", "-O3", "--fmad=false", "--expt-relaxed-constexpr", "-DTAPEGRAD_CUDA", "-Xptxas", "-v"]

# Registers a thread may use. With 128 of them, 2 blocks of 256 threads fit a multiprocessor; what
# multiplies on tensor cores keeps its sums in registers and has __launch_bounds__ for that.
BUDGET = 128
BUDGET_OF = {"tensor_core_kernel": 255}

# CUDA's sin and cos keep the digits of 2 / pi that a huge argument needs in local memory.
FRAME_ALLOWED = re.compile(r"3Sin|3Cos")

# Instructions that must be in the PTX of a file, so that a change that loses them is seen.
EXPECTED = {
    "unary.cu": [r"ld\.global(\.nc)?(\.\w+)*\.v4", r"st\.global(\.\w+)*\.v4"],
    "binary.cu": [r"ld\.global(\.nc)?(\.\w+)*\.v4", r"st\.global(\.\w+)*\.v4"],
    "copy.cu": [r"ld\.global(\.nc)?(\.\w+)*\.v4", r"st\.global(\.\w+)*\.v[24]"],
    "tensor_correlate.cu": [r"mma\.sync", r"cp\.async\.cg", r"ldmatrix", r"st\.global(\.\w+)*\.v4"],
    "tensor_core.cu": [r"mma\.sync", r"cp\.async\.cg", r"ldmatrix", r"st\.global(\.\w+)*\.v4"],
}

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")


def demangled(name):
    done = subprocess.run(["c++filt", name], capture_output=True, text=True, check=False)
    text = done.stdout.strip() or name
    return re.sub(r"\(anonymous namespace\)::|tg::kernels::|tg::gpu::|tg::functor::", "", text).split("(")[0]


def compile_one(nvcc, source, include, folder, arch, ptx):
    target = pathlib.Path(folder) / f"{source.stem}.{arch}{'.ptx' if ptx else '.o'}"
    command = [nvcc, *FLAGS, f"-arch={arch}", f"-I{include}", "-ptx" if ptx else "-c", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [f"{source.name} ({arch}): does not compile:\n{done.stderr.strip()}"], 0
    if ptx:
        text = target.read_text()
        return [f"{source.name}: no {wanted} in its PTX"
                for wanted in EXPECTED[source.name] if not re.search(wanted, text)], 0
    return judge(source.name, arch, done.stderr)


def judge(name, arch, log):
    """(what is wrong, number of kernels) by the log of ptxas -v."""
    wrong, kernel, kernels = [], "", 0
    for line in log.splitlines():
        if match := ENTRY.search(line):
            kernel, kernels = match.group(1), kernels + 1
        if (match := FRAME.search(line)) and any(int(n) for n in match.groups()):
            if match.group(2) == match.group(3) == "0" and FRAME_ALLOWED.search(kernel):
                continue
            wrong.append(f"{name} ({arch}): {demangled(kernel)}: {match.group(0)}")
        if match := USED.search(line):
            budget = next((b for k, b in BUDGET_OF.items() if k in kernel), BUDGET)
            if int(match.group(1)) > budget:
                wrong.append(f"{name} ({arch}): {demangled(kernel)}: {match.group(1)} registers, {budget} are its budget")
    return wrong, kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", type=int, default=2, help="compilers at the same time")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not nvcc:
        print("there is no nvcc here")
        return 77
    sources = args.files or sorted(ROOT.glob("kernels/cuda/**/*.cu"))
    wrong, kernels = [], 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        include = pathlib.Path(folder) / "include"
        (include / "tapegrad").mkdir(parents=True)
        for name in ("core", "kernels"):
            (include / "tapegrad" / name).symlink_to(ROOT / name)
        jobs = [pool.submit(compile_one, nvcc, s.resolve(), include, folder, arch, False)
                for s in sources for arch in ARCHITECTURES]
        jobs += [pool.submit(compile_one, nvcc, s.resolve(), include, folder, ARCHITECTURES[0], True)
                 for s in sources if s.name in EXPECTED]
        for job in jobs:
            found, count = job.result()
            wrong += found
            kernels += count
    if not args.files and kernels == 0:
        wrong.append("ptxas told of no kernel: its words have changed")
    for line in wrong:
        print(line)
    print(f"nvcc: {len(sources)} files, {kernels} kernels for {' and '.join(ARCHITECTURES)}, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
