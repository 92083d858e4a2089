#!/usr/bin/env python3
"""Training steps of tapegrad and of PyTorch side by side, in turns, in one call.

    python3 bench/compare.py [--threads 1,2] [--steps mlp,cnn,resnet,gpt] [--rounds 5] [--seconds 1]

Needs torch (2.x, from pip) in the Python that runs it, and build/release/bench/tapegrad_bench_steps.
Each round runs a step for about --seconds in tapegrad, in PyTorch as it comes, and in PyTorch at its
best (channels-last convolutions, fused optimizers, no spinning of idle threads). A figure is the median
over the rounds; the ratio is theirs over ours, taken round by round, with its least and greatest value.
With one thread CPU seconds count, with more the wall clock.
"""
import argparse
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Partner:
    def __init__(self, command, threads, spin=True):
        env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        env["OMP_NUM_THREADS"] = env["MKL_NUM_THREADS"] = str(threads)
        if not spin:
            env["GOMP_SPINCOUNT"] = "0"
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def run(self, step, seconds):
        self.process.stdin.write(f"{step} 0 {seconds}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 3:
            sys.exit(f"compare.py: a partner stopped while running {step}")
        return [float(v) for v in answer]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--steps", default="mlp,cnn,resnet,gpt")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--program", default=os.path.join(HERE, "../build/release/bench/tapegrad_bench_steps"))
    args = parser.parse_args()
    torch_steps = os.path.join(HERE, "torch_steps.py")
    print("| step | threads | tapegrad ms | PyTorch ms | at its best ms | ratio | to its best (spread) |")
    print("|---|---|---|---|---|---|---|")
    for threads in [int(t) for t in args.threads.split(",")]:
        partners = {
            "ours": Partner([args.program, "--serve", str(threads)], threads),
            "default": Partner([sys.executable, torch_steps, str(threads), "default"], threads),
            "best": Partner([sys.executable, torch_steps, str(threads), "best"], threads, spin=False),
        }
        for step in args.steps.split(","):
            times = {name: [] for name in partners}
            for _ in range(args.rounds):
                for name, partner in partners.items():
                    wall, cpu, _ = partner.run(step, args.seconds)
                    times[name].append(cpu if threads == 1 else wall)
            ms = {name: 1000 * statistics.median(t) for name, t in times.items()}
            ratios = {k: [b / a for a, b in zip(times["ours"], times[k])] for k in ("default", "best")}
            nearer = min(ratios, key=lambda k: statistics.median(ratios[k]))
            r = ratios[nearer]
            print(f"| {step} | {threads} | {ms['ours']:.3f} | {ms['default']:.3f} | {ms['best']:.3f} "
                  f"| {statistics.median(ratios['default']):.2f} "
                  f"| {statistics.median(r):.2f} ({min(r):.2f} to {max(r):.2f}) |", flush=True)
        for partner in partners.values():
            partner.close()


if __name__ == "__main__":
    main()
