#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks everything that needs an NVIDIA GPU; check-gpu.py describes the checks and options.
exec python3 -B "$(dirname "$0")/check-gpu.py" "$@"
