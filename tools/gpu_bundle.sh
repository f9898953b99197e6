#!/usr/bin/env bash
# Packs what shows on a machine with a GPU whether the trainer works there: programs, libraries and
# tests, from a finished build on a machine that needs no GPU.
# Promises   the archive needs nothing there but Python and the PyTorch that it was built for; it
#            appears when it is whole, and holds no link to a place of this machine.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
readonly kMbMax=55
readonly -a kPrograms=(keelrun keel minimal_train model_train gpt_bench nccl_probe)
readonly -a kModules=(libkeel_nccl.so libkeel_numeric_names.so libkeel_store_module.so)
# What every Linux with PyTorch has.
readonly kThere='/(libc|libm|libdl|librt|libpthread|libutil|libstdc\+\+|libgcc_s|libresolv)\.so'
readonly -a kScripts=(tests/trainer/kill_soak.py tests/trainer/soak_job.py bench/trainer/ddp_peer.py
  tests/gpu/bundle/stages.py tests/gpu/bundle/run.sh)

Help() {
  cat <<'TEXT'
usage: tools/gpu_bundle.sh [--build DIR] [--out FILE]

Makes FILE (default: evenkeel-gpu.tar.gz) from a build folder (default: build) that has the tests.
On a machine with a GPU, and the same minor version of PyTorch, with CUDA, for any Python:
  tar xf evenkeel-gpu.tar.gz && evenkeel-gpu/run.sh
Example: tools/setup.sh --tests && tools/gpu_bundle.sh
TEXT
}

Fail() {
  printf 'gpu_bundle.sh: %s\n' "$@" >&2
  exit 1
}

build=$root/build
out=evenkeel-gpu.tar.gz
while (($#)); do
  case $1 in
    --help | -h) Help; exit 0 ;;
    --build) build=${2:?--build wants a folder}; shift ;;
    --out) out=${2:?--out wants a file}; shift ;;
    *) Help >&2; exit 2 ;;
  esac
  shift
done

for file in "${kPrograms[@]/#/$build/bin/}" "${kModules[@]/#/$build/lib/evenkeel/}"; do
  [[ -e $file ]] || Fail "$file is not there; build it first: tools/setup.sh --tests." \
    "The NCCL module and its probe need NCCL's and CUDA's headers (see docs/gpu.md)"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readonly bundle=$work/evenkeel-gpu
mkdir -p "$bundle"/{bin,lib/evenkeel,scripts}
cp "${kPrograms[@]/#/$build/bin/}" "$bundle/bin/"
cp "${kModules[@]/#/$build/lib/evenkeel/}" "$bundle/lib/evenkeel/"
cp "$root/tools/keel/gpu_product.py" "$bundle/lib/evenkeel/"
cp "${kScripts[@]/#/$root/}" "$bundle/scripts/"
mv "$bundle/scripts/run.sh" "$bundle/"
cp "$root/LICENSE" "$bundle/"
cut -d. -f1-2 "$build/keel_torch_version.txt" >"$bundle/torch_version.txt"

# Debian's other libraries.
ldd "${kPrograms[@]/#/$build/bin/}" "${kModules[@]/#/$build/lib/evenkeel/}" 2>/dev/null |
  awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE "$kThere|/torch/lib/|/nvidia/" |
  while read -r library; do cp -L "$library" "$bundle/lib/"; done

strip "$bundle"/bin/* "$bundle"/lib/evenkeel/*.so
# What our checks print names sources: relative ones from here on, of the same length.
pattern=$(printf '%s/' "$root" | sed 's/[][\.*^$#]/\\&/g')
relative=./$(printf '%*s' $((${#root} - 1)) '' | tr ' ' /)
LC_ALL=C sed -i "s#$pattern#$relative#g" "$bundle"/bin/* "$bundle"/lib/evenkeel/*.so
# Where each looks for the others. CMake's way to write that cannot make it longer, so those that do
# not need PyTorch do not look for it.
cat >"$work/run_path.cmake" <<'TEXT'
file(RPATH_SET FILE "${file}" NEW_RPATH "${run_path}")
TEXT
for file in "$bundle"/bin/* "$bundle"/lib/evenkeel/*.so; do
  sections=$(readelf -d "$file")
  # What has no path of its own is found by those who load it.
  [[ $sections == *PATH* ]] || continue
  # shellcheck disable=SC2016  # the loader expands it
  up='$ORIGIN/..'
  if [[ $file == */bin/* ]]; then
    run_path=$up/lib with_torch=:$up/lib/evenkeel:$up/torch/lib
  else
    run_path=$up with_torch=:$up/../torch/lib
  fi
  [[ $sections != *libtorch_cpu.so* ]] || run_path+=$with_torch
  cmake "-Dfile=$file" "-Drun_path=$run_path" -P "$work/run_path.cmake" >/dev/null ||
    Fail "the run path of $file could not be set; why is above"
done
if readelf -d "$bundle"/bin/* "$bundle"/lib/*.so* "$bundle"/lib/evenkeel/*.so |
  grep -E 'R(UN)?PATH' | grep -E '\[/|:/'; then
  Fail "these look for libraries in folders of this machine"
fi
if grep -rlF "$root/" "$bundle"; then
  Fail "these name folders of this machine"
fi

tar -C "$work" -czf "$work/bundle.tar.gz" --owner=0 --group=0 evenkeel-gpu
size=$(stat -c %s "$work/bundle.tar.gz")
(cd "$bundle" && find . -type f -printf '%10s %P\n' | sort -k2)
((size <= kMbMax << 20)) || Fail "the archive has $((size >> 20)) MB; $kMbMax are allowed"
mv "$work/bundle.tar.gz" "$out"
version=$(<"$bundle/torch_version.txt")
echo "gpu_bundle.sh: $out: $((size >> 10)) KB, for PyTorch $version, after $SECONDS s"
