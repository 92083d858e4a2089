#!/usr/bin/env python3
"""Measures what tapegrad costs its users at compile time, and prints each figure beside its limit.

    tools/compile_cost.py            a user's training file: seconds and memory; the size of the library
    tools/compile_cost.py --build    also a whole release build from nothing, in build/cost

A figure over its limit is marked; the exit status says nothing of it, because a busy machine is slow.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RELEASE = ROOT / "build" / "release"
USER_FILE = ROOT / "tools" / "examples" / "train_fashion.cpp"


def cost_of(command):
    """(seconds of CPU time, peak memory in MB) of a command and all that it starts."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # a process of its own, so that the peak is that of this command alone
        import resource
        status = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(writer, f"{status} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss / 1024}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    status, seconds, megabytes = os.read(reader, 200).decode().split()
    os.close(reader), os.close(writer)
    if int(status) != 0:
        sys.exit(f"failed ({status}): {' '.join(map(str, command))}")
    return float(seconds), float(megabytes)


def show(what, value, unit, limit):
    mark = "" if value <= limit else "   OVER"
    print(f"{what:<44} {value:8.2f} {unit:<4} (at most {limit:g} {unit}){mark}")


def user_file(compiler, source):
    include = RELEASE / "include"
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, "-std=c++20", "-O2", f"-I{include}", "-c", str(source), "-o", f"{folder}/user.o"]
        runs = [cost_of(command) for _ in range(3)]
    show(f"{source.name} with {compiler} -O2, CPU time", min(r[0] for r in runs), "s", 2)
    show(f"{source.name} with {compiler} -O2, peak memory", max(r[1] for r in runs), "MB", 300)


def library_size():
    archive = RELEASE / "libtapegrad.a"
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(archive, folder)
        subprocess.run(["strip", "--strip-unneeded", copy], check=True)
        show("libtapegrad.a, stripped", os.path.getsize(copy) / 1e6, "MB", 10)


def release_build():
    folder = ROOT / "build" / "cost"
    shutil.rmtree(folder, ignore_errors=True)
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DTAPEGRAD_CCACHE=", "-DCMAKE_BUILD_TYPE=Release",
                 "-DTAPEGRAD_BUILD_TESTS=OFF", "-DTAPEGRAD_BUILD_BENCH=OFF"]
    subprocess.run([str(part) for part in configure], check=True, stdout=subprocess.DEVNULL)
    start = time.monotonic()
    seconds, _ = cost_of(["cmake", "--build", str(folder), "-j", "2"])
    show("release build on 2 cores (library, program)", (time.monotonic() - start) / 60, "min", 3)
    show("  the same in CPU time", seconds / 60, "min", 6)
    shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", action="store_true", help="time a whole release build too")
    parser.add_argument("--source", type=pathlib.Path, default=USER_FILE, help="the user's file (default: %(default)s)")
    parser.add_argument("--compiler", default="g++")
    args = parser.parse_args()
    if not (RELEASE / "libtapegrad.a").exists():
        sys.exit("build/release/libtapegrad.a is missing; build first: cmake --preset release && "
                 "cmake --build --preset release")
    user_file(args.compiler, args.source)
    library_size()
    if args.build:
        release_build()


if __name__ == "__main__":
    main()
