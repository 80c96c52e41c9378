#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks everything that needs an NVIDIA GPU; check-gpu.py says what, and with which options.
exec python3 -B "$(dirname "$0")/check-gpu.py" "$@"
