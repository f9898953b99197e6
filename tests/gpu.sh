#!/usr/bin/env bash
# Runs the tests that need a GPU (label gpu) and prints their figures. One GPU is enough: the ranks
# share it. Says clearly what is missing on a machine that has none.
# Usage: tests/gpu.sh [--help] [arguments for ctest]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

if [[ "${1:-}" == "--help" || "${1:-}" == "-h" ]]; then
    sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"
    exit 0
fi
if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
    echo "gpu.sh: no NVIDIA GPU here (nvidia-smi finds none); these tests need one" >&2
    exit 1
fi
nvidia-smi -L
"$root/tools/setup.sh"
ctest --test-dir "$root/build" -L gpu --verbose --no-tests=error "$@"
