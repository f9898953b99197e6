#!/usr/bin/env bash
# Measures the trainer and prints the tables of bench/trainer/README.md.
# Promises   needs nothing but tools/setup.sh.
# Does not   care for other work on the machine: give it a quiet one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly root
out=$root/build/trainer-bench.jsonl
options=()

while (($#)); do
  case $1 in
    --out) out=$2; shift ;;
    --help | -h)
      echo "usage: bench/trainer/run.sh [--out FILE] [--rounds N] [--steps N] [--kills N] [WHAT...]"
      echo "WHAT: throughput kills groups; all by default. Single measurements go to FILE"
      echo "(build/trainer-bench.jsonl)."
      exit
      ;;
    *) options+=("$1") ;;
  esac
  shift
done

"$root/tools/setup.sh"
python3 -B "$root/bench/trainer/measure.py" --bin "$root/build/bin" \
  --python "$root/.deps/venv/bin/python" ${options[@]+"${options[@]}"} >"$out"
python3 -B "$root/bench/trainer/report.py" "$out"
