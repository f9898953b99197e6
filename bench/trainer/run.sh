#!/usr/bin/env bash
# Measures the trainer and prints the tables of bench/trainer/README.md.
# Promises   needs nothing but tools/setup.sh.
# Does not   care for other work on the machine: give it a quiet one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly root
# shellcheck source=bench/torch_python.sh
source "$root/bench/torch_python.sh"
out=$root/build/trainer-bench.jsonl
peers=$root/build/peers
options=() rounds=() scenarios=()

Help() {
  echo "usage: bench/trainer/run.sh [--out FILE] [--rounds N] [--steps N] [--kills N] [WHAT...]"
  echo "WHAT: throughput kills groups recovery save stop resume loader; all by default. Single"
  echo "measurements go to FILE (build/trainer-bench.jsonl). --steps is for throughput, --kills for"
  echo "kills, and --rounds for both and for recovery, save, stop and resume. recovery installs"
  echo "torchft in build/peers."
}

while (($#)); do
  case $1 in
    --out) out=$2; shift ;;
    --help | -h) Help; exit ;;
    --rounds) options+=("$1" "$2") rounds=("$1" "$2"); shift ;;
    --*) options+=("$1" "$2"); shift ;;
    *) scenarios+=("$1") ;;
  esac
  shift
done
((${#scenarios[@]})) || scenarios=(throughput kills groups recovery save stop resume loader)

# DCP needs numpy, which comes with the tests' packages.
"$root/tools/setup.sh" --tests --target bench_trainer
python=$(BenchPython "$root/build")
packages=$(TestPackages "$root/build")
: >"$out"
for scenario in "${scenarios[@]}"; do
  if [[ $scenario =~ ^(save|stop|resume|loader)$ ]]; then
    PYTHONPATH=$packages \
      python3 -B "$root/bench/trainer/stops.py" "$scenario" --bin "$root/build/bin" \
      --python "$python" --tmp "$root/build" \
      ${rounds[@]+"${rounds[@]}"} >>"$out"
  elif [[ $scenario == recovery ]]; then
    python3 -B "$root/bench/compare/peers.py" "$peers" "$python" >&2
    python3 -B "$root/bench/trainer/recovery.py" --bin "$root/build/bin" \
      --python "$python" --torchft-python "$peers/bin/python" \
      ${rounds[@]+"${rounds[@]}"} >>"$out"
  else
    python3 -B "$root/bench/trainer/measure.py" "$scenario" --bin "$root/build/bin" \
      --python "$python" ${options[@]+"${options[@]}"} >>"$out"
  fi
done
python3 -B "$root/bench/trainer/report.py" "$out"
