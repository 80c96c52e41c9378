#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One part of mx analyze for each task of a Slurm array:
#   sbatch --array=1-16 slurm-array.sh MODEL [options of mx analyze]
# N overrides the number of parts, where an array makes some of them again.
#SBATCH --job-name=mx
#SBATCH --output=mx-%a.log
set -eu
part=${SLURM_ARRAY_TASK_ID-}
parts=${N-${SLURM_ARRAY_TASK_COUNT-}}
mkdir -p parts
exec mx analyze "$@" --shard "$part/$parts" --json "parts/part-$part.json" --quiet
