#!/usr/bin/env bash
# Measures checkpoints beside PyTorch's and prints the table of bench/ckpt/README.md.
# Promises   needs nothing but tools/setup.sh; the state and all runs stay in --dir.
# Does not   care for other work on the machine: give it a quiet one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly root
# shellcheck source=bench/torch_python.sh
source "$root/bench/torch_python.sh"
dir=$root/build/ckpt-bench rounds=5 worlds=1,2

Help() {
  cat <<'TEXT'
usage: bench/ckpt/run.sh [--dir DIR] [--rounds N] [--worlds 1,2]

  --dir DIR      where the state and the checkpoints go: on the disk to measure (build/ckpt-bench)
  --rounds N     how often each system runs (5)
  --worlds LIST  with how many processes (1,2)
TEXT
}

while (($#)); do
  case $1 in
    --dir) dir=$2 ;;
    --rounds) rounds=$2 ;;
    --worlds) worlds=$2 ;;
    --help | -h) Help; exit ;;
    *) echo "bench/ckpt/run.sh: unknown argument $1" >&2; Help >&2; exit 2 ;;
  esac
  shift 2
done

"$root/tools/setup.sh" --tests --target bench_ckpt
# LibTorch's own Python, and beside it the packages that only tests and benches need.
python=$(BenchPython "$root/build")
PYTHONPATH=$(TestPackages "$root/build")
export PYTHONPATH
mkdir -p "$dir/tmp"
[[ -e $dir/state.safetensors ]] || "$python" "$root/bench/ckpt/make_state.py" --out "$dir"
rm -f "$dir/ckpt.jsonl"
"$python" "$root/bench/ckpt/measure.py" --bin "$root/build/bin" --state "$dir" --tmp "$dir/tmp" \
  --rounds "$rounds" --worlds "$worlds" --json "$dir/ckpt.jsonl"
"$python" "$root/bench/ckpt/report.py" "$dir/ckpt.jsonl"
