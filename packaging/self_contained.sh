#!/usr/bin/env bash
# Makes of an installation, whose programs need what the build machine has, one that needs nothing
# but glibc, libstdc++ and a PyTorch: the package for Python as the wheel has it, with the programs
# in it and the libraries that these need. cmake/Package.cmake has cpack call it.
# Promises   the wheel is the one home of how that is done: what is here is what is in it.
# Does not   touch headers, static libraries and pages.
# Environment: KEEL_ENGINES=all, or what wheel.sh takes behind --torch: further versions of PyTorch.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
readonly build=${1:?usage: packaging/self_contained.sh BUILD PREFIX}
readonly prefix=${2:?usage: packaging/self_contained.sh BUILD PREFIX}
readonly package=$prefix/lib/evenkeel/python
tools=$(realpath -m "${KEEL_DEPS:-$root/.deps}")/wheel-tools/bin
readonly tools

UnpackWheel() {
  local work=$1
  local -a engines=()
  case ${KEEL_ENGINES:-} in
    '') ;;
    all) engines=(--all) ;;
    *) engines=(--torch "$KEEL_ENGINES") ;;
  esac
  "$root/packaging/wheel.sh" --build "$build" --out "$work/dist" "${engines[@]}"
  "$tools/python" -m wheel unpack --dest "$work/unpacked" "$work"/dist/*.whl >/dev/null
  rm -rf "$package"
  mkdir -p "$package"
  mv "$work"/unpacked/*/evenkeel* "$package/"
  # Of pip's world: its metadata, and the scripts that start the programs.
  rm -rf "$package"/*.dist-info "$package/evenkeel_programs.py"
  chmod -R u=rwX,go=rX "$package"
}

# The programs lie in the package, where they find what they load.
LinkPrograms() {
  local name
  for name in keelrun keel; do
    rm -f "$prefix/bin/$name"
    ln -s "../lib/evenkeel/python/evenkeel/bin/$name" "$prefix/bin/$name"
  done
  rm -f "$prefix"/lib/evenkeel/libkeel_{store_module,s3,numeric_names}.so \
    "$prefix/lib/evenkeel/gpu_product.py"
}

# What programs in C++ load beside these, with the libraries that the package has.
MendModules() {
  local module needed ours
  local -a rest
  mapfile -t rest < <(find "$prefix/lib/evenkeel" -maxdepth 1 -name '*.so')
  for module in "${rest[@]}"; do
    for needed in $("$tools/patchelf" --print-needed "$module"); do
      ours=$(compgen -G "$package/evenkeel_torch.libs/${needed%%.so*}-*" | head -n 1) || continue
      "$tools/patchelf" --replace-needed "$needed" "${ours##*/}" "$module"
    done
    # shellcheck disable=SC2016  # for the dynamic linker
    "$tools/patchelf" --set-rpath '$ORIGIN/python/evenkeel_torch.libs' "$module"
  done
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
UnpackWheel "$work"
LinkPrograms
MendModules
