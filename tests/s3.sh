#!/usr/bin/env bash
# Tries Evenkeel's checkpoints in a bucket of yours, with programs that are built already.
# Promises   all is below a prefix of its own, which it names; it ends at the first thing that is
#            not as it should be, says what, and shows what the program said.
# Does not   remove that prefix: its last line says how.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
readonly steps=60

Help() {
  cat <<'TEXT'
usage: tests/s3.sh [--build DIR] s3://BUCKET/PREFIX | gs://BUCKET/PREFIX

Looks at the place (keelrun --doctor), then trains there: killed with SIGKILL and gone on with,
stopped with SIGTERM, refused beside another job, mirrored from a directory that is lost. Each time
the last line must be that of a run in a directory. Then keel lists, verifies, copies and cleans up
there, and tools/python/evenkeel_ckpt.py verifies it once more, where Python has boto3.
  --build DIR   the build folder (default: build); tools/setup.sh makes it
  --help        this text
Keys, region and endpoint are found as AWS's own programs find them (docs/checkpoint-format.md, "In
a bucket"). It puts some 200 objects of some kB each, in about a minute.
Environment:
  KEEL_TRY_PYTHON=EXE   a Python with numpy, zstandard and boto3 (default: that of the tests)
TEXT
}

Say() { echo "s3.sh: $*"; }
Fail() {
  echo "s3.sh: NOT WELL: $*" >&2
  [[ ! -s $work/said ]] || tail -n 40 "$work/said" >&2
  exit 1
}

# Job CODE STEPS OPTIONS...: a job of two workers, which must end with that code.
Job() {
  local expected=$1 last=$2 code=0
  shift 2
  "$bin/keelrun" --standalone --nproc-per-node=2 "$bin/minimal_train" --log-every=0 \
    --steps="$last" "$@" >"$work/said" 2>&1 || code=$?
  ((code == expected)) || Fail "a job with $* ended with $code, not $expected"
}

LastLine() { grep '^final ' "$work/said" || Fail "there is no last line"; }

ExpectSameLine() {
  [[ $(LastLine) == "$quiet" ]] || Fail "$1: the last line is $(LastLine), not $quiet"
  Say "$1: the same bits"
}

# Begin OPTIONS...: an endless job, in the background; `job` is its process.
Begin() {
  : >"$work/said"   # of the job before; whoever waits for a word shall not find it there
  "$bin/keelrun" --standalone --nproc-per-node=2 "$bin/minimal_train" --log-every=0 \
    --steps=2000000 --save-every=20 "$@" >"$work/said" 2>&1 &
  job=$!
}

AwaitWord() {
  local i
  for ((i = 0; i < 600; ++i)); do
    ! grep -q -- "$1" "$work/said" || return 0
    kill -0 "$job" 2>/dev/null || Fail "the job has ended before it said '$1'"
    sleep 0.1
  done
  Fail "the job has not said '$1' within a minute"
}

TryTraining() {
  local code round
  Job 0 "$steps" --checkpoint-dir "$work/quiet"
  quiet=$(LastLine)
  for round in 1 2 3; do
    Begin --checkpoint-dir "$place/killed"
    AwaitWord ' checkpoint step='
    # Its workers go with it.
    kill -KILL "$job"
    wait "$job" 2>/dev/null || true
    Say "killed in round $round"
  done
  Begin --checkpoint-dir "$place/stopped"
  AwaitWord ' checkpoint step='
  mv "$work/said" "$work/first"
  Job 78 "$steps" --checkpoint-dir "$place/stopped"
  grep -q 'another job saves in' "$work/said" || Fail "a second job was refused for another reason"
  Say "a second job was refused"
  mv "$work/first" "$work/said"
  kill -TERM "$job"
  code=0
  wait "$job" || code=$?
  ((code == 75)) || Fail "a job that was stopped has ended with $code, not 75"
  Say "stopped and saved"
  Job 0 "$steps" --checkpoint-dir "$place/trained"
  ExpectSameLine "trained there"
}

TryMirror() {
  Job 0 $((steps / 2)) --checkpoint-dir "$work/disk" --checkpoint-mirror "$place/mirror"
  rm -rf "$work/disk"
  Job 0 "$steps" --checkpoint-dir "$work/disk" --checkpoint-mirror "$place/mirror"
  grep -q "^resumed .* from=$place/mirror/" "$work/said" ||
    Fail "it has not resumed from the mirror"
  ExpectSameLine "the directory lost, resumed from the mirror"
}

Keel() {
  "$bin/keel" "$@" >"$work/said" 2>&1 || Fail "keel $*"
}

TryKeel() {
  local python=${KEEL_TRY_PYTHON:-${KEEL_DEPS:-$root/.deps}/python-tests/bin/python}
  Keel ls "$place/killed"
  Keel verify "$place/trained@latest"
  Keel cp "$place/trained@$steps" "$work/copies"
  Keel cp "$work/copies@$steps" "$place/copies"
  Keel verify "$place/copies@$steps"
  Keel gc "$place/stopped" --keep 1
  Say "keel lists, verifies, copies and cleans up"
  if ! "$python" -c 'import boto3, numpy, zstandard' 2>/dev/null; then
    Say "not tried: evenkeel_ckpt.py, since $python has no boto3, numpy and zstandard"
    return
  fi
  "$python" -B "$root/tools/python/evenkeel_ckpt.py" "$place/copies" --verify >"$work/said" 2>&1 ||
    Fail "evenkeel_ckpt.py does not read what keel has written"
  Say "evenkeel_ckpt.py reads the same, by boto3"
}

Main() {
  local build=$root/build
  [[ ${1:-} != --help && ${1:-} != -h ]] || { Help; return; }
  if [[ ${1:-} == --build ]]; then
    build=${2:?--build wants a folder}
    shift 2
  fi
  [[ $# -eq 1 && $1 =~ ^(s3|gs)://. ]] || { Help >&2; exit 2; }
  bin=$build/bin
  work=$(mktemp -d)
  job=
  # shellcheck disable=SC2154  # job is set above
  trap '[[ -z $job ]] || kill -KILL "$job" 2>/dev/null || true; rm -rf "$work"' EXIT
  [[ -x $bin/keelrun ]] || Fail "there is no $bin/keelrun; build it first: tools/setup.sh"
  place=${1%/}/evenkeel-try-$(date -u +%Y%m%dT%H%M%SZ)-$$
  Say "below $place"
  "$bin/keelrun" --doctor --standalone --nproc-per-node=1 "$bin/minimal_train" \
    --checkpoint-dir "$place" >"$work/said" 2>&1 || true
  grep -A1 -E '^(OK|WARN|FAIL) +bucket' "$work/said" || Fail "the doctor says nothing of it"
  ! grep -qE '^FAIL +bucket' "$work/said" || Fail "the doctor found something wrong, see above"
  TryTraining
  TryMirror
  TryKeel
  Say "all is well; to remove what was put there: aws s3 rm --recursive $place"
}

Main "$@"
