#!/usr/bin/env bash
# The first thing to try: one worker trains a small model in quiet; then three train the same one,
# and one of them is killed on the way. Both runs must end with the same bits.
# Promises   exits with 0 only if they do; leaves no process behind.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
readonly launch=("$root/build/bin/keelrun" --standalone --max-restarts=3)
readonly train=("$root/build/bin/minimal_train" --steps 600 --log-every 100)
readonly workers=3

case ${1:-} in
  --help | -h)
    echo "usage: examples/quickstart.sh"
    echo "Sets up what is missing (tools/setup.sh), then trains a small model twice: alone, and on"
    echo "$workers workers of which one is killed. Both must end with the same bits."
    exit 0
    ;;
  ?*)
    echo "quickstart: unknown argument '$1'; it takes none but --help" >&2
    exit 2
    ;;
esac

Fail() {
  echo "quickstart: $1" >&2
  exit 1
}

# The last line that a job printed.
FinalOf() { grep -o 'final step=.*' "$1" | tail -n 1 || true; }

# What a job said last of itself.
Words() { tail -n 5 "$output/$1.log"; }

# Its log entries, and its last line.
Show() {
  grep -o ' step step=[0-9]* .*workers=[0-9]*' "$output/$1.log" | sed 's/^/  /'
  sed 's/^/   /' "$output/$1"
}

# Waits until a job has logged a line that holds this, or has ended.
AwaitLine() {
  for ((waited = 0; waited < 1200; waited++)); do
    if grep -qs -- "$2" "$1"; then return 0; fi
    if ! kill -0 "$3" 2>/dev/null; then return 1; fi
    sleep 0.05
  done
  return 1
}

echo "1. Setting up: packages, LibTorch and the build. The first time takes minutes, later none."
"$root/tools/setup.sh"

output=$(mktemp -d)
job=
trap 'if [[ $job ]]; then kill "$job" 2>/dev/null || true; fi; rm -rf "$output"' EXIT

echo
echo "2. A quiet run, for comparison: one worker."
echo "   \$ ${train[*]#"$root/"}"
"${train[@]}" >"$output/quiet" 2>"$output/quiet.log" || Fail "it failed: $(Words quiet)"
Show quiet

echo
echo "3. The same on $workers workers; one is killed with -9 while they train."
echo "   \$ ${launch[*]#"$root/"} --nproc-per-node $workers ${train[*]#"$root/"}"
"${launch[@]}" --nproc-per-node "$workers" "${train[@]}" \
  >"$output/killed" 2>"$output/killed.log" </dev/null &
job=$!
AwaitLine "$output/killed.log" ' step step=200 ' "$job" || Fail "it did not get on: $(Words killed)"
victim=$(pgrep -P "$job" -x minimal_train | tail -n 1)
kill -9 "$victim" 2>/dev/null || Fail "the job was over before it could be disturbed"
status=0
wait "$job" || status=$?
job=
Show killed
echo
grep -E 'worker-died|epoch-formed|state-agreed' "$output/killed.log" | cut -c1-160 | sed 's/^/   /'
if ((status != 0)); then Fail "the job failed with exit code $status: $(Words killed)"; fi

echo
echo "4. Comparing the last lines: steps, a digest of every loss, a digest of the whole state."
quiet=$(FinalOf "$output/quiet")
killed=$(FinalOf "$output/killed")
echo "   quiet:   $quiet"
echo "   killed:  $killed"
if [[ -z $quiet || $quiet != "$killed" ]]; then Fail "they differ"; fi
echo "   The same, to the last bit."
