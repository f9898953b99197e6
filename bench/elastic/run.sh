#!/usr/bin/env bash
# Measures launching and recovering beside torchrun and prints the table of bench/elastic/README.md.
# Promises   needs nothing but tools/setup.sh; as root also measures lost hosts.
# Does not   care for other work on the machine: give it a quiet one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly root
# shellcheck source=bench/torch_python.sh
source "$root/bench/torch_python.sh"
runs=10 kills=200 out=$root/build/elastic-bench.jsonl scenarios=() report=()

Help() {
  cat <<'TEXT'
usage: bench/elastic/run.sh [--runs N] [--kills N] [--out FILE] [SCENARIO...]

  --runs N     how often each thing that takes seconds is done (10)
  --kills N    how many workers are killed (200)
  --out FILE   where the single measurements go (build/elastic-bench.jsonl)
  --json       print the summary as JSON instead of tables
  SCENARIO     launch in-place foreign group lost-host supervisor coordinator-leaves
               coordinator-killed coordinator-cut coming etcd-members etcd-leaves etcd-killed
               etcd-silent board takeover; all by default
TEXT
}

while (($#)); do
  case $1 in
    --runs) runs=$2; shift ;;
    --kills) kills=$2; shift ;;
    --out) out=$2; shift ;;
    --json) report=(--json) ;;
    --help | -h) Help; exit ;;
    -*) echo "bench/elastic/run.sh: unknown argument $1" >&2; Help >&2; exit 2 ;;
    *) scenarios+=("$1") ;;
  esac
  shift
done

"$root/tools/setup.sh" --target bench_elastic
python=$(BenchPython "$root/build")
python3 -B "$root/bench/elastic/measure.py" --bin "$root/build/bin" \
  --python "$python" --runs "$runs" --kills "$kills" "${scenarios[@]}" >"$out"
python3 -B "$root/bench/elastic/report.py" "${report[@]}" "$out"
