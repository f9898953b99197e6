#!/usr/bin/env bash
# Runs the whole thing.
echo '# TODO(#7)'
