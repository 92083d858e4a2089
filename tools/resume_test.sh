#!/usr/bin/env bash
# Proves that a run that was killed and resumed ends with the very same weights as one that was not:
# kills it (SIGKILL) at random moments, with 0, 1 and 4 loader workers, random crops, flips and dropout
# on, and compares the SHA-256 of the final weights. Only a kill that met a living run in the middle of
# its training counts.
#   tools/resume_test.sh PROGRAM [KILLS]     20 kills, or so many
set -euo pipefail
program=$(realpath "$1")
kills=${2:-20}
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

# The first 1,700 training images, and 100 to test on: with all of them a start would take longer than
# the run. first PART KIND COUNT SKIP BYTES HEADER: a shorter IDX file, BYTES an element behind SKIP.
mkdir data
first() {
  local file=$1-$2-ubyte
  {
    printf '%b' "$6"
    # zcat is cut off by head, which is no fault here
    { zcat "/usr/share/datasets/fashion-mnist/$file.gz" 2>/dev/null || true; } | tail -c +$(($4 + 1)) | head -c $(($3 * $5))
  } >"data/$file" || [ -s "data/$file" ]
}
readonly size='\0\0\0\034\0\0\0\034'  # 28 x 28
first train images-idx3 1700 16 784 "\\0\\0\\010\\003\\0\\0\\006\\0244$size"
first train labels-idx1 1700 8 1 '\0\0\010\001\0\0\006\0244'
first t10k images-idx3 100 16 784 "\\0\\0\\010\\003\\0\\0\\0\\0144$size"
first t10k labels-idx1 100 8 1 '\0\0\010\001\0\0\0\0144'

settings=("data.folder=$work/data" data.validation=100 data.batch_size=16 data.augment=true model.name=mlp
          model.dropout=true model.hidden=300 epochs=3 checkpoint_every=5 optimizer.name=adamw
          schedule.warmup=10 outputs="$work" seed=5)
readonly steps=300
: >empty.yaml

fail() { echo "resume_test: $*" >&2; exit 1; }
info() { "$program" info "$1/last.safetensors" | awk -v what="$2" '$1 == what { print $NF }'; }

# Starts the run of this name, or goes on with it where it was killed.
start() {
  if [ -f "$1/last.safetensors" ]; then
    "$program" train --resume "$1" >>"$1.log" 2>&1 &
  else
    rm -rf "$1"
    "$program" train empty.yaml "${settings[@]}" run="$1" data.workers="$2" >>"$1.log" 2>&1 &
  fi
  pid=$!
}

# Waits for the end of the run and holds its weights and its log against the undisturbed one.
finish() {
  wait "$pid" || fail "the run $1 failed: $(tail -n 1 "$1.log")"
  pid=
  got=$(info "$1" weights)
  [ "$got" = "$expected" ] || fail "the resumed run $1 ended elsewhere: $got, not $expected"
  [ "$(find "$1" -name '*unfinished*' | wc -l)" = 0 ] || fail "$1 holds what a killed save left"
  cut -d, -f1-6 "$1/log.csv" | cmp -s - <(cut -d, -f1-6 whole/log.csv) || fail "the log of $1 is another"
}

begin=$(date +%s%N)
start whole 0
wait "$pid" || fail "the undisturbed run failed: $(tail -n 1 whole.log)"
expected=$(info whole weights)
# How long a run takes here, in milliseconds: kills come within about half of that.
whole_time=$((($(date +%s%N) - begin) / 1000000))

done_kills=0
compared=0
for workers in 0 1 4; do
  quota=$((done_kills + (kills - done_kills) / (workers == 0 ? 3 : workers == 1 ? 2 : 1)))
  name=killed$workers
  start "$name" "$workers"
  before=-1
  while [ $done_kills -lt $quota ]; do
    delay=$((RANDOM % (whole_time / 2) + whole_time / 8))
    sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
    if kill -KILL "$pid" 2>/dev/null; then
      wait "$pid" 2>/dev/null || true
      step=0
      [ ! -f "$name/last.safetensors" ] || step=$(info "$name" steps)
      if [ "$step" -gt 0 ] && [ "$step" -lt $steps ] && [ "$step" -gt "$before" ]; then
        done_kills=$((done_kills + 1))
        echo "kill $done_kills with $workers workers: behind step $step of $steps"
        before=$step
      fi
    else  # it was quicker: one comparison more, then again from the start
      finish "$name"
      compared=$((compared + 1))
      rm -rf "$name"
      before=-1
    fi
    start "$name" "$workers"
  done
  finish "$name"
  compared=$((compared + 1))
done
pid=
echo "$done_kills kills, $compared runs that ended with the same weights and log: $expected"
