#!/usr/bin/env bash
# Passes the tests: sets up what is missing, then runs CTest on three builds.
# Promises   all three run even if one fails; exits 0 only if each of them passed; the last lines
#            are CTest's summary of the release build, or the names of the builds that failed.
#            Where that is no terminal, tests that passed have no line.
# Does not   run tests with the label gpu (tests/gpu.sh does), or nightly without --nightly.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
builds=(asan tsan release)  # release last, so that its summary is the last thing to read
failed=()
nightly=0

Help() {
  cat <<'TEXT'
usage: tests/run.sh [--quick | --nightly] [ARGUMENTS OF CTEST...]

Sets up what is missing (tools/setup.sh), then runs the tests:
  build-asan   tests with the label asan, under AddressSanitizer and most of UBSan: all without
               LibTorch, the trainer's, and a short soak of kills
  build-tsan   those with the label tsan, under ThreadSanitizer: threads, without LibTorch
  build        everything but the labels gpu and nightly
  --quick      only the last of these
  --nightly    all of these, and the long forms of soaks and comparisons (the label nightly); under
               the sanitizers all rounds of the tests, all of UBSan (in build-asan-all), and under
               ThreadSanitizer what the other one gets, the trainer too (in build-tsan-all).
               Before them, all that users run is compiled file by file
  --help       this text
Examples: tests/run.sh --quick -R Store      tests/run.sh --quick -L unit      tests/run.sh -LE slow
TEXT
}

# The sanitizers of GCC 12 and clang 14 do not know the address layouts that newer kernels draw
# (mmap_rnd_bits > 28).
# There their programs, which the build already runs to list the tests, run without randomisation.
FixedAddresses() {
  local bits
  bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)
  if ((bits > 28)) && setarch -R true 2>/dev/null; then
    setarch -R "$@"
  else
    "$@"
  fi
}

# In a file, a thousand lines about what passed would hide what did not.
WithoutWhatPassed() {
  if [[ -t 1 ]]; then
    cat
  else
    sed -u -E '/^ +Start +[0-9]+: /d; /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .* Passed +[0-9.]+ sec/d'
  fi
}

# Fills `ctest_arguments`. CTest takes several -LE for "all of these", so a caller's joins ours.
ReadArguments() {
  local excluded='^gpu$'
  ((nightly)) || excluded+='|^nightly$'
  ctest_arguments=()
  filtered=$(($# > 0))  # then a sanitized build may well have no such test
  while (($#)); do
    if [[ $1 == -LE || $1 == --label-exclude ]] && (($# > 1)); then
      excluded+="|$2"
      shift
    else
      ctest_arguments+=("$1")
    fi
    shift
  done
  ctest_arguments+=(-LE "$excluded")
}

# RunBuild NAME: sets up one build and runs its tests.
RunBuild() {
  local name=$1 dir=$root/build-$1 label=${1%-all} setup=("$root/tools/setup.sh")
  local run=(FixedAddresses) which=() no_tests=error
  setup+=(--tests)
  if [[ $name == release ]]; then
    dir=$root/build run=()
  else
    ((nightly)) && label=asan
    setup+=(--preset "$name" --target "${label}_tests") which=(-L "$label")
    [[ $label == asan ]] || setup+=(--torch-free)
    ((filtered)) && no_tests=ignore
  fi
  echo "== $name: build =="
  "${run[@]}" "${setup[@]}" || return
  echo "== $name: test =="
  # Twice as many as there are processors, since many tests wait for most of their time.
  "${run[@]}" ctest --test-dir "$dir" --output-on-failure --no-label-summary \
    -j "$(($(nproc) * 2))" \
    --no-tests="$no_tests" "${which[@]}" "${ctest_arguments[@]}" </dev/null | WithoutWhatPassed
}

Main() {
  local name
  case ${1:-} in
    --help | -h) Help; return ;;
    --quick) builds=(release); shift ;;
    --nightly) nightly=1 builds=(asan-all tsan-all release); shift ;;
  esac
  # LibTorch itself is not instrumented.
  local asan=detect_stack_use_after_return=1:check_initialization_order=1:verify_asan_link_order=0
  # GCC 12's LeakSanitizer takes what lies before thread-local variables for a header of Glibc's if
  # they begin 16 bytes into a page, and dies of it at the end ("Tracer caught signal 11"). Glibc's
  # allocations are reachable for it anyway.
  asan+=:intercept_tls_get_addr=0
  export ASAN_OPTIONS=${ASAN_OPTIONS:-$asan}
  local known_leaks=suppressions=$root/tests/lsan.supp:print_suppressions=0
  export LSAN_OPTIONS=${LSAN_OPTIONS:-$known_leaks}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
  export TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1:ignore_noninstrumented_modules=1}
  ReadArguments "$@"
  # Other builds compile several files as one, and would not see what one of them does not include.
  ((!nightly)) || "$root/tools/setup.sh" --preset debug --programs || failed+=(debug)
  for name in "${builds[@]}"; do
    RunBuild "$name" || failed+=("$name")
  done
  ((${#failed[@]})) || return 0
  echo
  echo "tests/run.sh: FAILED: ${failed[*]} (of ${builds[*]}); what failed is named above" >&2
  return 1
}

Main "$@"
