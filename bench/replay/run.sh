#!/usr/bin/env bash
# Replays a recorded spot trace with real launchers: bench/replay/README.md, or --help.
# Promises   needs nothing but tools/setup.sh, which it runs unless --bin says where programs are;
#            then torchft is installed, too, where it is asked for.
# Does not   care for other work on the machine: give it a quiet one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly root

needs_setup=yes needs_peers=no
for word; do
  case $word in
    --bin | --bin=* | --dry-run | --help | -h) needs_setup=no ;;
    torchft | --system=torchft) needs_peers=yes ;;
  esac
done
if [[ $needs_setup == yes ]]; then
  "$root/tools/setup.sh" --target bench_replay >&2
  if [[ $needs_peers == yes ]]; then
    python3 -B "$root/bench/compare/peers.py" "$root/build/peers" \
      "$root/.deps/venv/bin/python" >&2
  fi
fi
exec python3 -B "$root/bench/replay/replay.py" "$@"
