#!/usr/bin/env bash
# Replays a recorded spot trace with real launchers: bench/replay/README.md, or --help.
# Promises   needs nothing but tools/setup.sh, which it runs unless --bin says where programs are;
#            then torchft is installed, too, where it is asked for.
# Does not   care for other work on the machine: give it a quiet one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly root
# shellcheck source=bench/torch_python.sh
source "$root/bench/torch_python.sh"

needs_setup=yes needs_peers=no needs_python=no shows=no build=$root/build before='' options=()
for word; do
  case $word in
    --bin | --bin=*) needs_setup=no ;;
    --dry-run | --help | -h) needs_setup=no shows=yes ;;
    torchft | --system=torchft) needs_peers=yes ;;
    torchrun | keelrun-ddp | --system=torchrun | --system=keelrun-ddp) needs_python=yes ;;
  esac
  [[ $before != --bin ]] || build=$(dirname "$word")
  [[ $word != --bin=* ]] || build=$(dirname "${word#*=}")
  before=$word
done
[[ " $*" != *" --python"* && $shows == no ]] || needs_python=no
if [[ $needs_setup == yes ]]; then
  "$root/tools/setup.sh" --target bench_replay >&2
  if [[ $needs_peers == yes ]]; then
    python=$(BenchPython "$build")
    python3 -B "$root/bench/compare/peers.py" "$root/build/peers" "$python" >&2
  fi
fi
if [[ $needs_python == yes ]]; then
  python=$(BenchPython "$build")
  options=(--python "$python")
fi
exec python3 -B "$root/bench/replay/replay.py" "${options[@]}" "$@"
