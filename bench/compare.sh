#!/usr/bin/env bash
# Compares Evenkeel with its peers and writes one report: bench/compare/README.md, or --help.
# Promises   needs nothing but tools/setup.sh, which it runs unless --bin says where programs are.
# Does not   care for other work on the machine: give it a quiet one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root

needs_setup=yes
for word; do
  case $word in
    --bin | --bin=* | --report | --help | -h) needs_setup=no ;;
  esac
done
if [[ $needs_setup == yes ]]; then "$root/tools/setup.sh" --target bench_compare >&2; fi
exec python3 -B "$root/bench/compare/compare.py" "$@"
