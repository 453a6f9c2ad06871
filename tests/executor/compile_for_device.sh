#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The interpreter must stay fit for GPUs: compiles it for one, without a warning, where that can be
# done.  compile_for_device.sh SOURCE_ROOT
set -eu
if ! command -v nvcc >/dev/null; then
  echo "skipped: no nvcc in PATH"
  exit 77
fi
object=$(mktemp)
trap 'rm -f "$object"' EXIT
nvcc -std=c++20 -arch=sm_90 -fmad=false --expt-relaxed-constexpr -Werror all-warnings \
  -I"$1/src" -c "$1/tests/executor/interpreter.cu" -o "$object"
test -s "$object"
