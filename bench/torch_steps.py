"""The steps of bench/steps.cpp in PyTorch, as a partner of compare.py: same models, same protocol."""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(64 * 12 * 12, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.down = nn.Identity()
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.down(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        blocks, cin = [], 64
        for cout, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [BasicBlock(cin, cout, stride), BasicBlock(cout, cout, 1)]
            cin = cout
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(512, 10)

    def forward(self, x):
        return self.fc(self.blocks(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.qkv, self.proj = nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ln2, self.fc1, self.fc2 = nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(n, t, d))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary=256, context=128, dim=256, heads=8, layers=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, dim), nn.Embedding(context, dim)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(layers)])
        self.ln, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocabulary, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def training_step(model, optimizer, loss_of):
    def step():
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def make(name, channels_last, fused):
    torch.manual_seed(0)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    if name == "mlp":
        model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
        x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused or None)
    elif name == "cnn":
        model = CNN().to(memory_format=layout)
        x, y = torch.randn(64, 1, 28, 28).to(memory_format=layout), torch.randint(0, 10, (64,))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused or None)
    elif name == "resnet":
        model = ResNet18().to(memory_format=layout)
        x, y = torch.randn(32, 3, 32, 32).to(memory_format=layout), torch.randint(0, 10, (32,))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, fused=fused or None)
    else:
        model = GPT()
        x, y = torch.randint(0, 256, (8, 128)), torch.randint(0, 256, (8 * 128,))
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=fused or None)
        return training_step(model, optimizer, lambda m: F.cross_entropy(m(x).view(-1, 256), y))
    return training_step(model, optimizer, lambda m: F.cross_entropy(m(x), y))


def main():
    torch.set_num_threads(int(sys.argv[1]))
    best = sys.argv[2] == "best"
    made = {}
    for line in sys.stdin:
        name, count, seconds = line.split()
        count, seconds = int(count), float(seconds)
        if name not in made:
            made[name] = make(name, channels_last=best, fused=best)
            for _ in range(3):
                made[name]()
        step, done = made[name], 0
        cpu, start, wall = time.process_time(), time.perf_counter(), 0.0
        while done == 0 or (done < count if count > 0 else wall < seconds):
            step()
            done += 1
            wall = time.perf_counter() - start
        print(f"{wall / done:.9f} {(time.process_time() - cpu) / done:.9f} 0", flush=True)


if __name__ == "__main__":
    main()
