#!/usr/bin/env python3
"""Makes what the tests of nn and optim compare with, with PyTorch in float64.

    python3 tools/make_nn_references.py tests

Writes tests/nn/layers.safetensors, tests/nn/models.safetensors, tests/nn/torch_cnn.safetensors and
tests/optim/optimizers.safetensors. Needs torch, numpy and safetensors from pip; the tests themselves need
no Python.
"""
import math
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

torch.set_num_threads(1)


def pattern(shape, k):
    """Numbers that the C++ tests can make too (tests/nn/reference.h)."""
    n = int(np.prod(shape)) if len(shape) else 1
    v = (73 * np.arange(n, dtype=np.int64) + 101 * k) % 251
    return torch.from_numpy(((v - 125) / 64).reshape(shape))


def record(tensors, case, module, inputs, call=None):
    """State, inputs, output, and all gradients of sum(output * pattern)."""
    for name, value in module.state_dict().items():
        tensors[f"{case}/state/{name}"] = value.clone()
    module.zero_grad()
    inputs = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    output = (call or (lambda m, *xs: m(*xs)))(module, *inputs)
    (output * pattern(output.shape, 7)).sum().backward()
    tensors[f"{case}/output"] = output.detach()
    for i, x in enumerate(inputs):
        tensors[f"{case}/input/{i}"] = x.detach()
        if x.grad is not None:
            tensors[f"{case}/input_grad/{i}"] = x.grad
    for name, p in module.named_parameters():
        if p.grad is not None:
            tensors[f"{case}/grad/{name}"] = p.grad.clone()
    for name, value in module.named_buffers():  # as the call left them
        tensors[f"{case}/after/{name}"] = value.clone()


def layers():
    torch.manual_seed(1)
    t = {}
    record(t, "linear", nn.Linear(5, 3).double(), [pattern((2, 4, 5), 1)])
    record(t, "linear_no_bias", nn.Linear(5, 3, bias=False).double(), [pattern((4, 5), 1)])
    record(t, "conv2d", nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=1, groups=2).double(),
           [pattern((2, 4, 7, 6), 2)])
    for name, train in ("batch_norm2d_train", True), ("batch_norm2d_eval", False):
        m = nn.BatchNorm2d(3).double().train(train)
        with torch.no_grad():
            m.weight.copy_(pattern((3,), 3))
            m.running_mean.copy_(pattern((3,), 4))
            m.running_var.copy_(pattern((3,), 5).abs() + 0.5)
        record(t, name, m, [pattern((4, 3, 2, 5), 6)])
    record(t, "batch_norm1d", nn.BatchNorm1d(3, momentum=None).double(), [pattern((6, 3), 1)])
    record(t, "layer_norm", nn.LayerNorm((3, 4), eps=1e-4).double(), [pattern((2, 3, 4), 2)])
    record(t, "embedding", nn.Embedding(6, 4, padding_idx=-2).double(), [torch.tensor([[0, 4, 5], [2, 5, 1]])])

    attention = nn.MultiheadAttention(8, 2).double()
    record(t, "attention_self", attention, [pattern((5, 3, 8), 3)],
           lambda m, x: m(x, x, x, need_weights=False)[0])
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    record(t, "attention_causal", attention, [pattern((5, 3, 8), 3)],
           lambda m, x: m(x, x, x, need_weights=False, attn_mask=causal, is_causal=True)[0])
    padding = torch.tensor([[False] * 4, [False, False, True, True], [False, True, False, False]])
    cross = nn.MultiheadAttention(8, 4, batch_first=True, bias=False).double()
    record(t, "attention_cross", cross, [pattern((3, 5, 8), 1), pattern((3, 4, 8), 2), pattern((3, 4, 8), 4)],
           lambda m, q, k, v: m(q, k, v, need_weights=False, key_padding_mask=padding)[0])
    record(t, "attention_unbatched", attention, [pattern((5, 8), 5)],
           lambda m, x: m(x, x, x, need_weights=False)[0])
    return t


class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)


class CNN(nn.Module):
    def __init__(self, size):
        super().__init__()
        side = (size - 4) // 2
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(64 * side * side, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(self.conv2(self.conv1(x).relu()).relu(), 2)
        return self.fc2(self.fc1(x.flatten(1)).relu())


class BasicBlock(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), nn.BatchNorm2d(c_out)
        self.conv2, self.bn2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False), nn.BatchNorm2d(c_out)
        self.downsample = None
        if stride != 1 or c_in != c_out:
            self.downsample = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (self.downsample(x) if self.downsample else x)).relu()


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        widths = [64, 64, 128, 256, 512]
        for i in range(1, 5):
            stride = 1 if i == 1 else 2
            setattr(self, f"layer{i}", nn.Sequential(BasicBlock(widths[i - 1], widths[i], stride),
                                                     BasicBlock(widths[i], widths[i], 1)))
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu()
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.c_attn, self.attn.c_proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp.c_fc, self.mlp.c_proj = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (y.view(n, t, self.heads, c // self.heads).transpose(1, 2)
                   for y in self.attn.c_attn(self.ln_1(x)).split(c, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, c)
        x = x + self.attn.c_proj(y)
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary, context, depth, heads, dim):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, dim), nn.Embedding(context, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.ln_f, self.lm_head = nn.LayerNorm(dim), nn.Linear(dim, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def fill(module):
    """Every weight from its number in the sorted list of names, small enough for deep networks."""
    with torch.no_grad():
        for k, (name, p) in enumerate(sorted(module.named_parameters(), key=lambda item: item[0])):
            fan_in = p[0].numel() if p.dim() > 1 else 16
            p.copy_(pattern(p.shape, k) / math.sqrt(fan_in) + (1 if "bn" in name and "weight" in name else 0))
    return module


def models():
    """Weights come from `fill`, so that nothing large is stored: outputs, losses and some gradients are."""
    t = {}
    tokens = torch.tensor([[1, 5, 3, 3, 0, 9], [2, 2, 8, 7, 6, 4]])
    for name, module, x, kept in (
            ("mlp", MLP([48, 16, 16, 4]), pattern((3, 1, 6, 8), 1), ["layers.0.bias", "layers.2.weight"]),
            ("cnn", CNN(10), pattern((2, 1, 10, 10), 2), ["conv1.weight", "conv2.bias", "fc2.weight"]),
            ("resnet18", ResNet18(), pattern((2, 3, 16, 16), 3),
             ["bn1.weight", "layer2.0.downsample.1.bias", "layer4.1.bn2.weight", "fc.bias"]),
            ("gpt", GPT(11, 8, 2, 2, 16), tokens,
             ["wte.weight", "wpe.weight", "blocks.1.attn.c_attn.bias", "blocks.0.ln_1.weight"])):
        fill(module.double())
        y = module(x)
        loss = (y * pattern(y.shape, 7)).sum()
        loss.backward()
        t[f"{name}/output"] = y.detach()
        for p in kept:
            t[f"{name}/grad/{p}"] = dict(module.named_parameters())[p].grad.clone()
        if name == "resnet18":
            t[f"{name}/after/layer3.1.bn1.running_var"] = module.layer3[1].bn1.running_var.clone()
            module.eval()
            with torch.no_grad():
                t[f"{name}/output_eval"] = module(x)
    return t


def torch_cnn():
    """A file as PyTorch users have it: the plain state dict in float32."""
    torch.manual_seed(3)
    module = CNN(8)
    tensors = dict(module.state_dict())
    return tensors, module.double()(pattern((3, 1, 8, 8), 4)).detach()


def optimizers():
    t = {}
    start, gradients = pattern((5, 7), 1), [pattern((5, 7), 10 + i) for i in range(5)]
    variants = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
        "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        "sgd_dampening": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
        "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        "sgd_maximize": lambda p: torch.optim.SGD(p, lr=0.1, maximize=True, weight_decay=0.01),
        "adam": lambda p: torch.optim.Adam(p, lr=0.01),
        "adam_decay": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.99), eps=1e-4, weight_decay=0.1),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
        "adamw_maximize": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1, maximize=True),
    }
    for name, make in variants.items():
        p = nn.Parameter(start.clone())
        optimizer = make([p])
        for i, g in enumerate(gradients):
            p.grad = g.clone()
            optimizer.step()
            t[f"{name}/{i}"] = p.detach().clone()

    schedules = {
        "StepLR": lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5),
        "LinearLR": lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.25, 1.0, 6),
        "CosineLR": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10, 0.01),
        "CosineRestarts": lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 4, 2, 0.01),
    }
    for name, make in schedules.items():
        optimizer = torch.optim.SGD([nn.Parameter(start.clone())], lr=0.1)
        schedule = make(optimizer)
        rates = []
        for _ in range(11 if name == "CosineLR" else 30):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        t[f"schedule/{name}"] = torch.tensor(rates, dtype=torch.float64)
    return t


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "tests"
    save_file({k: v.contiguous() for k, v in layers().items()}, f"{out}/nn/layers.safetensors")
    reference = models()
    tensors, output = torch_cnn()
    reference["torch_cnn/output"] = output
    save_file({k: v.contiguous() for k, v in reference.items()}, f"{out}/nn/models.safetensors")
    save_file(tensors, f"{out}/nn/torch_cnn.safetensors")
    save_file(optimizers(), f"{out}/optim/optimizers.safetensors")


if __name__ == "__main__":
    main()
