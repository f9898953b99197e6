#!/bin/sh
# Runs the stages of this bundle with a Python that has PyTorch: run.sh --help.
here=$(cd "$(dirname "$0")" && pwd -P) || exit 1
stages=$here/scripts/stages.py
[ -e "$stages" ] || stages=$here/stages.py   # in the sources, for --help
exec "${PYTHON:-python3}" -B "$stages" "$@"
