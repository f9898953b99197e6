#!/usr/bin/env bash
# Builds and tests Evenkeel with one PyTorch of each minor version, and prints a table.
# Promises   each version has a build folder of its own, which stays, as its PyTorch does in .deps/:
#            a second run compiles only what has changed. A version that fails has a row that says
#            where, and the next one is tried; then it exits with 1.
# Does not   touch build/; run tests with the labels gpu or nightly; try wheels (the nightly test
#            Packaging.torch_versions does).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
deps=$(realpath -m "${KEEL_DEPS:-$root/.deps}")
readonly deps
# shellcheck source=tools/torch.sh
source "$root/tools/torch.sh"
# Older than those that a released wheel is for.
readonly -a kOlder=(2.9.1 2.10.0)
readonly kSteps=200  # of the fixed job, whose last line says which bits it got

versions=()
tests=.
target=all
form=table
child=  # what is running for us, which dies with us, and so does all that it has started

Help() {
  cat <<'TEXT'
usage: tests/torch_versions.sh [--tests REGEX | --no-tests] [--json] [VERSION...]

For each version of PyTorch, as 2.15.0 (default: one of each minor version from 2.9 on): downloads
it (5 GB on disk each), builds in build-torch/VERSION, trains one small fixed job, and runs the
tests that tests/run.sh --quick runs. Then prints a table:

  PYTORCH   BUILT  TESTS                LAST LINE OF THE JOB       SAME BITS AS
  2.11.0    yes    1234 passed          final step=200 trail=...   2.15.0
  2.15.0    yes    2 of 1234 failed     final step=200 trail=...   2.11.0

  --tests REGEX  only the tests whose names match, as CTest's -R takes it
  --no-tests     only build what users run, and train: a quarter of the time
  --json         print {"versions": [...]} instead, for scripts
  --help         this text
It goes on after a version that fails, and exits with 1 at the end; 2: the arguments make no sense.
All that was said is in build-torch/VERSION/torch_versions.log, and with the tests that failed, in
their own words, in Testing/Temporary/LastTest.log beside it. What is built stays, so an
interrupted run goes on where it stopped. With tests a version takes most of an hour on 2 cores.
Environment: KEEL_DEPS, KEEL_JOBS, KEEL_PYTHON: see tools/setup.sh --help
Examples: tests/torch_versions.sh 2.15.0
          tests/torch_versions.sh --tests '^(Trainer|Exchange)' 2.9.1 2.15.0
          tests/torch_versions.sh --no-tests --json >bits.json
TEXT
}

Say() { echo "torch_versions.sh: $*" >&2; }
Misused() {
  Say "$*; tests/torch_versions.sh --help lists what there is"
  exit 2
}

ParseArguments() {
  while (($#)); do
    case $1 in
      --help | -h) Help; exit 0 ;;
      --tests) (($# > 1)) || Misused "--tests wants a regular expression"; tests=$2; shift ;;
      --no-tests) tests='' target=programs ;;
      --json) form=json ;;
      -*) Misused "unknown option '$1'" ;;
      *)
        IsTorchVersion "$1" || Misused "'$1' is no version of PyTorch in full, as 2.15.0"
        versions+=("$1")
        ;;
    esac
    shift
  done
  ((${#versions[@]})) || mapfile -t versions < <(
    printf '%s\n' "${kOlder[@]}"
    sed '/^#/d' "$root/packaging/wheel/torch_versions.txt"
  )
}

# Logged COMMAND...: as a child that dies with us, all of it into the version's log. It leads a
# process group of its own, for ctest and ninja leave theirs running when they are ended.
Logged() {
  local status=0
  echo "== $*" >>"$log"
  setsid "$@" >>"$log" 2>&1 </dev/null &
  child=$!
  wait "$child" || status=$?
  child=
  return "$status"
}

# Sets `built` to yes, or to what failed.
BuildOne() {
  local version=$1 torch
  built="no: setup"
  Logged env -u KEEL_TORCH KEEL_TORCH_VERSION="$version" KEEL_DEPS="$deps" \
    "$root/tools/setup.sh" --tests --no-build || return
  torch=$(TorchFolder "$version") || return
  built="no: cmake"
  Logged env --chdir="$root" cmake --preset release -B "$folder" -DKEEL_TORCH="$torch" \
    -DKEEL_TEST_PYTHON="$deps/python-tests/bin/python" || return
  built="no: compiler"
  Logged cmake --build "$folder" --target "$target" -j "${KEEL_JOBS:-$(nproc)}" || return
  built=yes
}

# Sets `last_line`, that of the fixed job, or to what failed.
TrainOne() {
  last_line="no: minimal_train"
  Logged "$folder/bin/minimal_train" --steps "$kSteps" || return
  last_line=$(grep -o '^final step=[0-9]* trail=[0-9a-f]* digest=[0-9a-f]*' "$log" | tail -n 1) ||
    last_line="no: no last line"
  [[ $last_line == final* ]]
}

# Sets `passed` to a summary; CTest's own is "99% tests passed, 2 tests failed out of 345".
TestOne() {
  local status=0 summary
  local form='[0-9]*% tests passed, \([0-9]*\) tests\{0,1\} failed out of \([0-9]*\)'
  passed=-
  [[ -n $tests ]] || return 0
  # Twice as many as there are processors, since many tests wait for most of their time.
  Logged ctest --test-dir "$folder" --output-on-failure --no-label-summary --no-tests=error \
    -j "$(($(nproc) * 2))" -LE '^gpu$|^nightly$' -R "$tests" || status=$?
  summary=$(sed -n "s/^$form\$/\1 \2/p" "$log" | tail -n 1)
  if [[ -z $summary ]]; then
    passed="none: CTest ended with $status"
  elif [[ $summary == 0\ * ]]; then
    passed="${summary#* } passed"
  else
    passed="${summary% *} of ${summary#* } failed"
  fi
  return "$status"
}

# TryOne VERSION: adds a row to `rows`: version, built, tests, last line, by tabs.
TryOne() {
  local version=$1 folder=$root/build-torch/$1 status=0
  local log=$folder/torch_versions.log built=- passed=- last_line=- began=$SECONDS
  mkdir -p "$folder"
  : >"$log"
  Say "PyTorch $version: building in ${folder#"$root"/}"
  if BuildOne "$version"; then
    TrainOne || status=1
    [[ -z $tests ]] || Say "PyTorch $version: built after $((SECONDS - began)) s; testing"
    TestOne || status=1
  else
    status=1
  fi
  rows+=("$version"$'\t'"$built"$'\t'"$passed"$'\t'"$last_line")
  Say "PyTorch $version: built: $built; tests: $passed; $last_line ($((SECONDS - began)) s)"
  ((status == 0)) || Say "PyTorch $version: see $log"
  return "$status"
}

# The other versions whose job ended with this line.
SameAs() {
  local own=$1 line=$2 row version other same=()
  [[ $line == final* ]] || { echo -; return; }
  for row in "${rows[@]}"; do
    IFS=$'\t' read -r version _ _ other <<<"$row"
    [[ $version == "$own" || $other != "$line" ]] || same+=("$version")
  done
  ((${#same[@]})) && echo "${same[*]}" || echo none
}

PrintTable() {
  local row version built passed last_line
  local layout='%-9s %-12s %-22s %-95s %s\n'
  # shellcheck disable=SC2059  # the layout is ours
  printf "$layout" PYTORCH BUILT TESTS "LAST LINE OF THE JOB" "SAME BITS AS"
  for row in "${rows[@]}"; do
    IFS=$'\t' read -r version built passed last_line <<<"$row"
    # shellcheck disable=SC2059
    printf "$layout" "$version" "$built" "$passed" "$last_line" "$(SameAs "$version" "$last_line")"
  done
}

# No value of ours has a quote or a backslash.
PrintJson() {
  local row version built passed last_line comma=''
  local layout='%s\n  {"version": "%s", "built": "%s", "tests": "%s", "last_line": "%s", '
  layout+='"same": "%s"}'
  printf '{"versions": ['
  for row in "${rows[@]}"; do
    IFS=$'\t' read -r version built passed last_line <<<"$row"
    # shellcheck disable=SC2059
    printf "$layout" "$comma" "$version" "$built" "$passed" "$last_line" \
      "$(SameAs "$version" "$last_line")"
    comma=,
  done
  printf '\n]}\n'
}

StopChild() {
  [[ -n $child ]] || return 0
  kill -- "-$child" 2>/dev/null || :
  wait "$child" || :
}

Main() {
  local version failed=0 rows=()
  ParseArguments "$@"
  trap StopChild EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  for version in "${versions[@]}"; do
    TryOne "$version" || failed=1
  done
  if [[ $form == json ]]; then PrintJson; else PrintTable; fi
  return "$failed"
}

Main "$@"
