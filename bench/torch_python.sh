# shellcheck shell=bash
# Which Python measures and runs the peers: one whose PyTorch is that of the build. To be sourced,
# with `root` set to the repository.
# Promises   our programs and the peers run on one version of PyTorch, whichever tools/setup.sh was
#            told to take (KEEL_TORCH, KEEL_TORCH_VERSION, KEEL_DEPS); else a sentence says why not.
# Does not   look at a Python that a script's own --python names.
# Errors     a function that fails says why on stderr and returns 1.

BenchFail() {
  echo "bench: $*" >&2
  return 1
}

# OfCache BUILD NAME: what that build folder was configured with.
OfCache() { sed -n "s/^$2:[^=]*=//p" "$1/CMakeCache.txt"; }

# BenchPython BUILD: prints that Python. KEEL_BENCH_PYTHON names another one.
BenchPython() {
  local build=$1 python=${KEEL_BENCH_PYTHON:-} torch wanted has
  [[ -e $build/CMakeCache.txt && -e $build/keel_torch_version.txt ]] || {
    BenchFail "$build is no build with LibTorch, so nobody knows which PyTorch to compare with;" \
      "run tools/setup.sh, or give --python where there is that option"
    return
  }
  wanted=$(<"$build/keel_torch_version.txt")
  torch=$(OfCache "$build" KEEL_TORCH)
  # The folder that both builds take where they are given none.
  [[ -n $torch ]] || torch=$(echo "${root:?}"/.deps/venv/lib/python3*/site-packages/torch)
  [[ -n $python ]] || python=${torch%/lib/python3*/*-packages/torch}/bin/python3
  [[ -x $python ]] || {
    BenchFail "there is no $python, and so no Python of the LibTorch in $torch; name one that has" \
      "PyTorch $wanted: KEEL_BENCH_PYTHON=/path/to/python"
    return
  }
  # Elsewhere than here, where a folder may be called torch.
  has=$(cd / && "$python" -c 'import torch; print(torch.__version__.partition("+")[0])' 2>&1) || {
    BenchFail "$python cannot import torch: ${has##*$'\n'}"
    return
  }
  has=${has##*$'\n'}
  [[ $has == "$wanted" ]] || {
    BenchFail "$python has PyTorch $has, and $build was made with $wanted: that would be no" \
      "comparison; name a Python that has $wanted: KEEL_BENCH_PYTHON=/path/to/python"
    return
  }
  echo "$python"
}

# TestPython BUILD: prints the Python that has the tests' packages.
TestPython() {
  local python
  python=$(OfCache "$1" KEEL_TEST_PYTHON)
  python=${python:-$root/.deps/python-tests/bin/python}
  [[ -x $python ]] ||
    BenchFail "there is no $python, which has the packages that the peers need; run" \
      "tools/setup.sh --tests" || return
  echo "$python"
}

# TestPackages BUILD: prints the folder of these packages, for PYTHONPATH.
TestPackages() {
  local python
  python=$(TestPython "$1") || return
  "$python" -c 'import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))' ||
    BenchFail "$python lacks the tests' packages; run tools/setup.sh --tests"
}
