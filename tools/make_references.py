#!/usr/bin/env python3
"""Makes the references of the operator table with PyTorch and NumPy in float64.

    build/release/tests/tapegrad_row_list | python3 tools/make_references.py tests/ops/references [FAMILY ...]

Reads the rows from standard input and writes one safetensors file per family. Needs torch, numpy
and safetensors from pip; the tests themselves need no Python.
"""
import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file


def pattern(shape, k):
    # Shared with tests/ops/inputs.cpp: change both or none.
    n = int(np.prod(shape)) if shape else 1
    return (73 * np.arange(n, dtype=np.int64) + 101 * k) % 251


WHOLE = {"i64.": torch.int64, "u8.": torch.uint8, "bool.": torch.bool}


def make_input(spec, k, kind):
    shape, domain = spec["shape"], spec["domain"]
    v = pattern(shape, k)
    if domain == "integer":
        return torch.from_numpy((spec["low"] + v % (spec["high"] - spec["low"])).reshape(shape))
    if domain == "boolean":
        return torch.from_numpy((v % 2 == 1).reshape(shape))
    if domain == "values":
        x = np.array([float(t) for t in spec["values"]], dtype=np.float64)
    elif kind:
        x = {"i64.": v % 7, "u8.": v, "bool.": v % 2}[kind]
    elif domain == "normal":
        x = np.where(v == 125, 0.5, (v - 125) / 64)
    elif domain == "positive":
        x = (v + 1) / 64
    else:
        x = (v % 125 + 1) / 128
    x = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float64).reshape(shape))
    return x.to(WHOLE[kind]) if kind else x


def gradient(y, k):
    return make_input({"shape": list(y.shape), "domain": "normal"}, 50 + k, "")


def says_something(sample, kind):
    """Listed values that an integer dtype does not hold say nothing of it (tests/ops/inputs.cpp)."""
    values = [float(v) for spec in sample["in"] if spec["domain"] == "values" for v in spec["values"]]
    return not kind or all(abs(v) < 128 and v == int(v) and (v >= 0 or kind != "u8.") for v in values)


def evaluate(sample, kind):
    xs = [make_input(spec, k, kind) for k, spec in enumerate(sample["in"])]
    if not kind:
        for x, spec in zip(xs, sample["in"]):
            if x.is_floating_point() and spec["grad"]:
                x.requires_grad_()
    names = {f"x{k}": x for k, x in enumerate(xs)}
    names.update(torch=torch, F=F, np=np, math=math)
    ys = eval(sample["torch"], names)
    return xs, list(ys) if isinstance(ys, (tuple, list)) else [ys]


def references(row):
    out = {}
    for s, sample in enumerate(row["samples"]):
        if not sample["torch"]:
            continue
        for kind in row["kinds"]:
            if not says_something(sample, kind):
                continue
            try:
                xs, ys = evaluate(sample, kind)
            except Exception as error:
                sys.exit(f"{row['name']} sample {s} {kind} ({sample['torch']}): {error}")
            for k, y in enumerate(ys):
                out[f"{row['name']}.{s}.{kind}y{k}"] = y.detach()
            with_grad = [(k, y) for k, y in enumerate(ys) if y.requires_grad]
            if kind or not with_grad:
                continue
            torch.autograd.backward([y for _, y in with_grad], [gradient(y, k) for k, y in with_grad])
            for k, x in enumerate(xs):
                if x.requires_grad:
                    out[f"{row['name']}.{s}.dx{k}"] = torch.zeros_like(x) if x.grad is None else x.grad
    return out


def main():
    folder, wanted = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    for family in json.load(sys.stdin):
        if wanted and family["family"] not in wanted:
            continue
        tensors = {}
        for row in family["rows"]:
            tensors.update(references(row))
        tensors = {name: t.detach().contiguous().clone() for name, t in tensors.items()}
        path = os.path.join(folder, family["family"] + ".safetensors")
        save_file(tensors, path, metadata={"made_by": "tools/make_references.py", "torch": torch.__version__})
        print(f"{path}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
