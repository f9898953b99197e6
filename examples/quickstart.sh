#!/usr/bin/env bash
# The first thing to try: sets up what is missing, then lets three processes train one model.
# Promises   exits with the job's own exit code; 1 if the job was content but the digests differ.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
readonly program=$root/build/bin/allreduce_train
readonly workers=3

case ${1:-} in
  --help | -h)
    echo "usage: examples/quickstart.sh"
    echo "Sets up what is missing (tools/setup.sh), then runs: allreduce_train --workers $workers"
    exit 0
    ;;
  ?*)
    echo "quickstart: unknown argument '$1'; it takes none but --help" >&2
    exit 2
    ;;
esac

echo "1. Setting up: packages, LibTorch and the build. The first time takes minutes, later none."
"$root/tools/setup.sh"

echo
echo "2. Training: $workers processes meet on a TCPStore, form a Gloo group, and train one small"
echo "   model together; after each step they hold the same parameters."
echo "   \$ build/bin/allreduce_train --workers $workers"
echo
output=$(mktemp)
trap 'rm -f "$output"' EXIT
status=0
"$program" --workers "$workers" </dev/null | tee "$output" || status=$?
echo
if ((status != 0)); then
  echo "quickstart: the job failed with exit code $status; its own words are above" >&2
  exit "$status"
fi

echo "3. Comparing: each worker's last digest of its parameters."
# One line a worker: "rank digest", from its last line of output.
last=$(sed -nE 's/.*rank=([0-9]+) .*digest=([0-9a-f]+).*/\1 \2/p' "$output" |
  awk '{digest[$1] = $2} END {for (rank in digest) print rank, digest[rank]}' | sort -n)
awk '{print "   worker " $1 "  " $2}' <<<"$last"
different=$(cut -d' ' -f2 <<<"$last" | sort -u | wc -l)
if [[ $(wc -l <<<"$last") != "$workers" || $different != 1 ]]; then
  echo "quickstart: expected $workers workers with one and the same digest" >&2
  exit 1
fi
echo "   All $workers are the same, to the last bit."
