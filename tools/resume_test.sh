#!/usr/bin/env bash
# Proves that a run that was killed and resumed ends with the very same weights as one that was not:
# kills (SIGKILL) at random moments, 20 times in all, with 0, 1 and 4 loader workers, augmentation and
# dropout on, and compares the SHA-256 of the final weights.
#   tools/resume_test.sh PROGRAM [KILLS]
set -euo pipefail
program=$(realpath "$1")
kills=${2:-20}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

settings=(data.train_samples=1600 data.validation=100 data.batch_size=16 data.augment=true model.name=mlp
          model.dropout=true model.hidden=64 epochs=3 checkpoint_every=5 optimizer.name=adamw schedule.warmup=10
          outputs="$work" seed=5)
: >empty.yaml

weights() { "$program" info "$1/last.safetensors" | awk '$1 == "weights" { print $3 }'; }

"$program" train empty.yaml "${settings[@]}" run=whole data.workers=0 >/dev/null
expected=$(weights whole)

done_kills=0
for workers in 0 1 4; do
  "$program" train empty.yaml "${settings[@]}" run="killed$workers" data.workers=$workers >/dev/null 2>&1 &
  pid=$!
  quota=$(((kills - done_kills) / (workers == 0 ? 3 : workers == 1 ? 2 : 1)))
  for ((k = 0; k < quota; ++k)); do
    sleep "0.$((RANDOM % 25 + 10))"
    if kill -KILL $pid 2>/dev/null; then done_kills=$((done_kills + 1)); fi
    wait $pid 2>/dev/null || true
    if [ -f "killed$workers/last.safetensors" ]; then
      "$program" train --resume "killed$workers" >/dev/null 2>&1 &
    else
      rm -rf "killed$workers"
      "$program" train empty.yaml "${settings[@]}" run="killed$workers" data.workers=$workers >/dev/null 2>&1 &
    fi
    pid=$!
  done
  wait $pid
  got=$(weights "killed$workers")
  if [ "$got" != "$expected" ]; then
    echo "with $workers workers the resumed run ended elsewhere: $got, not $expected" >&2
    exit 1
  fi
  cut -d, -f1-6 "killed$workers/log.csv" | cmp - <(cut -d, -f1-6 whole/log.csv)
done
echo "$done_kills kills, the same weights each time: $expected"
