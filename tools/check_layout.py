#!/usr/bin/env python3
"""Holds the source tree against the rules of its house and prints one line per breach.

    tools/check_layout.py [ROOT]

The rules: which folder may include which (RANKS below), what a public header may include, how long a file
may be, that every public operator has a test row, that every kernel interface has its kernels, which
macros there may be, that no program needs Python when it runs, and what stands at the top level. Exit status 1 when a rule is broken.
"""

import pathlib
import re
import subprocess
import sys

# What each folder may include, itself apart: everything below it, nothing above or beside it.
BELOW = {
    "core": [],
    "kernels": ["core"],
    "autograd": ["core", "kernels"],
    "nn": ["core", "kernels", "autograd"],
    "optim": ["core", "kernels", "autograd", "nn"],
    "data": ["core", "kernels", "autograd"],
}
ANYTHING = ["tools", "tests", "bench"]  # programs stand on top and may include every folder
TOP_FILES = ["CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md"]

# The two arrows that point up and may. The CUDA runtime is a library header that core/cuda/ may include
# (allocator, streams, events); the tape members of Tensor are declared in core and defined in autograd.
CUDA_RUNTIME_IN = "core/cuda/"
TAPE_MEMBERS = ("core/tensor.h", "autograd/tensor_methods.cpp")

SOURCES = {".h", ".cpp", ".cu", ".cuh"}
COUNTED = SOURCES | {".py", ".sh"}
LONGEST_FILE = 600

# A public header may include the C++ standard library only. Headers for those who write kernels are not
# public in this sense: whoever includes one of these has the libraries at hand.
KERNEL_HEADERS = ("kernels/cpu/", "kernels/cuda/", "kernels/simt/")

# Gathers the headers of the public operators; other headers beside them are for their sources only.
PUBLIC_OPERATORS = "autograd/ops.h"

# What drives the operator table, and so names operators without testing them.
TABLE_DRIVER = ("_test.cpp", "compare.cpp", "inputs.cpp", "families.cpp", "rows_main.cpp")

MACROS = re.compile(r"TG_MODULE\w*|TG_HD\w*")
# Switches that a library header reads, set in the one source that includes it.
LIBRARY_SWITCHES = re.compile(r"(STB|STBI|EIGEN|CATCH_CONFIG|NOMINMAX)\w*|_GNU_SOURCE")

# CUDA's own words, which the emulator says in its place.
CUDA_WORDS = re.compile(r"__shared__|__launch_bounds__")
CUDA_WORDS_IN = "kernels/simt/"

INCLUDE = re.compile(r'^[ \t]*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
DEFINE = re.compile(r"^[ \t]*#\s*define\s+(\w+)", re.MULTILINE)
PYTHON = re.compile(r'"(?:[^"\\\n]|\\.)*\bpython3?\b(?:[^"\\\n]|\\.)*"')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*")', re.DOTALL)


def without_comments(text):
    """The text with comments blanked and line numbers kept; strings stay."""
    return COMMENT.sub(lambda m: m.group(1) or "\n" * m.group(0).count("\n"), text)


class Tree:
    """The files of a source tree by their path below its root, with their text."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.paths = self._paths()
        self.text = {}
        for path in self.paths:
            if pathlib.PurePath(path).suffix in COUNTED:
                file = self.root / path
                if file.is_file():
                    self.text[path] = file.read_text(encoding="utf-8")
        self.code = {p: without_comments(t) for p, t in self.text.items() if pathlib.PurePath(p).suffix in SOURCES}

    def _paths(self):
        """What git would commit, or every file outside of build folders where there is no git."""
        listing = subprocess.run(
            ["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True, check=False) if (self.root / ".git").exists() else None
        if listing and listing.returncode == 0:
            return sorted(p for p in listing.stdout.decode().split("\0") if p)
        skipped = {"build", "outputs", ".git", "__pycache__"}
        return sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*")
                      if not skipped & set(p.relative_to(self.root).parts))

    def below(self, folder, suffix):
        return [p for p in self.code if p.startswith(folder) and p.endswith(suffix)]


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_arrows(tree):
    """A folder includes itself and what stands below it, by the full name tapegrad/folder/file.h."""
    for path, code in tree.code.items():
        folder = path.split("/")[0]
        if folder not in BELOW:
            continue
        for include in INCLUDE.finditer(code):
            kind, name = include.groups()
            where = f"{path}:{line_of(code, include.start())}"
            if kind == '"' and not name.startswith("tapegrad/"):
                yield f'{where}: includes "{name}"; write "tapegrad/{folder}/..."'
            if not name.startswith("tapegrad/"):
                continue
            parts = name.split("/")
            target = parts[1] if len(parts) > 2 else "tools"  # tapegrad/tapegrad.h lives in tools
            if target != folder and target not in BELOW[folder]:
                allowed = ", ".join([folder] + BELOW[folder])
                yield f"{where}: {folder} includes {name}, but may include only: {allowed}"


def check_public_headers(tree):
    """No Eigen, CUDA or other library in a public header: users compile these."""
    for path, code in tree.code.items():
        if path.split("/")[0] not in BELOW or not path.endswith(".h") or path.startswith(KERNEL_HEADERS):
            continue
        for include in INCLUDE.finditer(code):
            kind, name = include.groups()
            where = f"{path}:{line_of(code, include.start())}"
            if kind == "<" and re.search(r"[./]", name):
                if path.startswith(CUDA_RUNTIME_IN) and name.startswith("cuda"):
                    continue
                yield f"{where}: a public header includes <{name}>; only the C++ standard library may be here"
            if name.startswith(tuple("tapegrad/" + prefix for prefix in KERNEL_HEADERS)):
                yield f"{where}: a public header includes {name}, which needs libraries that users may lack"


def check_length(tree):
    for path, text in tree.text.items():
        lines = text.count("\n")
        if lines > LONGEST_FILE:
            yield f"{path}: {lines} lines; {LONGEST_FILE} is the limit, 400 the habit: split it"


def namespace_level(code):
    """The code with everything inside of function bodies and classes taken out, preprocessor lines too."""
    code = re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", "", code, flags=re.MULTILINE)
    out, stack = [], []
    start = 0  # of the statement that a brace may belong to
    for i, c in enumerate(code):
        if c == "{":
            opens_namespace = re.search(r"\bnamespace\b[^;{}()]*$", code[start:i]) is not None
            stack.append(opens_namespace)
            start = i + 1
            if all(stack):
                out.append(";")
                continue
        elif c == "}":
            if stack:
                stack.pop()
            start = i + 1
            if all(stack):
                out.append(";")
            continue
        elif c == ";":
            start = i + 1
        if all(stack):
            out.append(c)
    return "".join(out)


# A declaration at namespace level that gives back a tensor: its name is that of an operator.
OPERATOR = re.compile(
    r"(?:^|[;>\s])(?:const\s+)?"
    r"(?:Tensor\s*&?|std::(?:vector|pair|tuple|array)<[^;()]*\bTensor\b[^;()]*>|\w*(?:Result|Output|Pair)\w*)"
    r"\s+(\w+|operator\s*[^\s(]+)\s*\(([^;]*)")


def operators(tree):
    """{name of a public operator: (where it is declared, whether it takes a tensor)}"""
    found = {}
    gathered = {m.group(2)[len("tapegrad/"):] for m in INCLUDE.finditer(tree.code.get(PUBLIC_OPERATORS, ""))}
    for path in sorted(gathered & set(tree.below("autograd/ops/", ".h"))):
        for match in OPERATOR.finditer(namespace_level(tree.code[path])):
            name = re.sub(r"\s+", "", match.group(1))
            if not name.startswith("operator"):  # the same functions as add, mul... under another spelling
                takes_tensor = re.search(r"\bTensor\b", match.group(2)) is not None
                found[name] = (path, takes_tensor or found.get(name, (path, False))[1])
    return found


def check_rows(tree):
    """Every public operator has a row in the operator table: its name as a string, or a call in a row.

    The form that writes in place, add_, may be handed to a row without being called there.
    What makes tensors from nothing (zeros, arange) has no input to vary and needs no row; a call in any test will do.
    """
    def words(paths):
        text = "\n".join(tree.code[p] for p in paths)
        return set(re.findall(r'"(\w+)', text)) | set(re.findall(r"\b(?:\w+(?=\s*\()|\w+_)", text))

    in_rows = words(p for p in tree.below("tests/ops/", ".cpp") if not p.endswith(TABLE_DRIVER))
    in_tests = words(tree.below("tests/", ".cpp"))
    without = {}
    for name, (path, takes_tensor) in operators(tree).items():
        if name not in (in_rows if takes_tensor else in_tests):
            without.setdefault((path, takes_tensor), []).append(name)
    for (path, takes_tensor), names in without.items():
        place = "has no row in tests/ops/*.cpp" if takes_tensor else "is called by no test"
        yield f"{path}: {place}: {', '.join(names)}"


def check_kernels(tree):
    """A kernel interface, a header of kernels/ that declares functions on a device, has its source there."""
    devices = {"cpu": ("Cpu", ".cpp"), "cuda": ("Cuda", ".cu")}
    has_cuda = bool(tree.below("kernels/cuda/", ".cu"))
    for path in tree.below("kernels/", ".h"):
        if path.count("/") != 1:
            continue
        code = tree.code[path]
        stem = pathlib.PurePath(path).stem
        for device, (tag, suffix) in devices.items():
            if device == "cuda" and not has_cuda:
                continue
            if not re.search(r"\w+\s*\(\s*" + tag + r"\b[^;{}]*\)\s*;", namespace_level(code)):
                continue
            # One file, or a folder of that name where one file would be too long.
            if f"kernels/{device}/{stem}{suffix}" not in tree.code and not tree.below(f"kernels/{device}/{stem}/", suffix):
                yield f"{path}: declares kernels for {tag}, but kernels/{device}/{stem}{suffix} does not exist"


def check_macros(tree):
    for path, code in tree.code.items():
        if path.split("/")[0] in ("tests", "bench"):
            continue
        for define in DEFINE.finditer(code):
            name = define.group(1)
            if MACROS.fullmatch(name) or (path.endswith((".cpp", ".cu")) and LIBRARY_SWITCHES.fullmatch(name)):
                continue
            if path.startswith(CUDA_WORDS_IN) and CUDA_WORDS.fullmatch(name):
                continue
            yield f"{path}:{line_of(code, define.start())}: macro {name}; only TG_MODULE and TG_HD may be macros"


def check_python(tree):
    """The program, the library and the tests run without Python."""
    for path, code in tree.code.items():
        for match in PYTHON.finditer(code):
            yield f"{path}:{line_of(code, match.start())}: {match.group(0)}: no source may call Python"
    for path in ("tools/quickstart.sh", "tools/test.sh"):
        for number, line in enumerate(tree.text.get(path, "").splitlines(), 1):
            if re.search(r"\bpython3?\b", line.split("#")[0]):
                yield f"{path}:{number}: the quickstart and the tests run without Python"


def check_words(tree):
    for path, text in tree.text.items():
        if path == "tools/check_layout.py" or path.startswith("tests/tools/"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            word = re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line)
            if word:
                yield f"{path}:{number}: {word.group(0)}: finish it, or say in words what is not covered"


def check_top_level(tree):
    """Nothing stands beside the folders but what TOP_FILES names, and files whose name begins with a dot."""
    for name in sorted({p.split("/")[0] for p in tree.paths}):
        if not name.startswith(".") and name not in TOP_FILES and name not in [*BELOW, *ANYTHING]:
            yield f"{name}: stands at the top level, where only {', '.join(TOP_FILES)} and the folders do"


def check_folders(tree):
    for folder in list(BELOW) + ANYTHING:
        here = tree.root / folder
        if here.is_dir() and not (here / "README.md").is_file():
            yield f"{folder}/README.md is missing: what lives here, what it may include, how to add one more"
    header, source = TAPE_MEMBERS
    if header in tree.code and tree.below("autograd/", ".cpp") and source not in tree.code:
        yield f"{source} is missing: it defines the tape members that {header} declares"


CHECKS = [check_arrows, check_public_headers, check_length, check_rows, check_kernels, check_macros,
          check_python, check_words, check_top_level, check_folders]


def breaches(root):
    tree = Tree(root)
    return [line for check in CHECKS for line in check(tree)]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = breaches(root)
    for line in found:
        print(line)
    print(f"layout: {len(found)} breach{'es' if len(found) != 1 else ''} of the rules" if found
          else "layout: every rule is kept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
