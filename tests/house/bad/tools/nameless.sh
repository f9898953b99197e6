#!/bin/bash
set -eu
# TODO  expect: todo
