#!/usr/bin/env bash
# Compares Evenkeel with its peers and writes one report: bench/compare/README.md, or --help.
# Promises   needs nothing but tools/setup.sh, which it runs unless --bin says where programs are.
# Does not   care for other work on the machine: give it a quiet one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
# shellcheck source=bench/torch_python.sh
source "$root/bench/torch_python.sh"

needs_setup=yes needs_python=yes build=$root/build before='' options=()
for word; do
  case $word in
    --bin | --bin=*) needs_setup=no ;;
    --python | --python=*) needs_python=no ;;
    --report | --help | -h) needs_setup=no needs_python=no ;;
  esac
  [[ $before != --bin ]] || build=$(dirname "$word")
  [[ $word != --bin=* ]] || build=$(dirname "${word#*=}")
  before=$word
done
if [[ $needs_setup == yes ]]; then "$root/tools/setup.sh" --target bench_compare >&2; fi
# Programs that lie in no build tell nobody their PyTorch: then --python is asked for.
[[ $needs_setup == yes || -e $build/CMakeCache.txt ]] || needs_python=no
if [[ $needs_python == yes ]]; then
  python=$(BenchPython "$build")
  options=(--python "$python")
fi
exec python3 -B "$root/bench/compare/compare.py" "${options[@]}" "$@"
