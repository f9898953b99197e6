#!/usr/bin/env bash
# Measures checkpoints in a bucket beside PyTorch's and prints the tables of bench/ckpt/README.md.
# Promises   needs nothing but tools/setup.sh; the state, the peers' packages and all runs stay in
#            --dir.
# Does not   care for other work on the machine: give it a quiet one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly root
# shellcheck source=bench/torch_python.sh
source "$root/bench/torch_python.sh"
readonly -a kPeers=(s3torchconnector==1.5.0 s3torchconnectorclient==1.5.0 tenacity==9.1.2)
dir=$root/build/ckpt-bench steps=300
declare -a passed=()

Help() {
  cat <<'TEXT'
usage: bench/ckpt/buckets.sh [--dir DIR] [--steps N] [--rounds N] [--rate MB] [--systems LIST]

  --dir DIR       where the state and the checkpoints go (build/ckpt-bench)
  --steps N       how long the state is trained, where there is none yet (300, up to an hour)
  --rounds N      how often each system runs (5)
  --rate MB       the store's link carries so many MB a second, each way (0: as fast as it goes)
  --systems LIST  of keel_disk, keel_s3, dcp_s3, torch_save_s3
TEXT
}

while (($#)); do
  case $1 in
    --dir) dir=$2 ;;
    --steps) steps=$2 ;;
    --rounds | --rate | --systems) passed+=("$1" "$2") ;;
    --help | -h) Help; exit ;;
    *) echo "bench/ckpt/buckets.sh: unknown argument $1" >&2; Help >&2; exit 2 ;;
  esac
  shift 2
done

"$root/tools/setup.sh" --tests --target bench_ckpt
# LibTorch's own Python, and beside it the packages that only tests and benches need.
python=$(BenchPython "$root/build")
test_python=$(TestPython "$root/build")
packages=$(TestPackages "$root/build")
mkdir -p "$dir/tmp"
if [[ ! -e $dir/peers/.complete || $(<"$dir/peers/.complete") != "${kPeers[*]}" ]]; then
  rm -rf "$dir/peers"
  "$test_python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --target "$dir/peers" "${kPeers[@]}"
  echo "${kPeers[*]}" >"$dir/peers/.complete"
fi
PYTHONPATH=$packages:$dir/peers
export PYTHONPATH OMP_NUM_THREADS=1
[[ -e $dir/state.safetensors ]] ||
  "$python" "$root/bench/ckpt/make_state.py" --out "$dir" --steps "$steps"
"$python" "$root/bench/ckpt/buckets.py" --bin "$root/build/bin" --state "$dir" --tmp "$dir/tmp" \
  "${passed[@]}"
