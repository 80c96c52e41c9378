#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The script of docs/howto with an emulated sbatch. slurm_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
script=$(realpath "$2")/docs/howto/slurm-array.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$mx" "$scratch/bin/mx"
# Runs the tasks one after the other: sbatch --array=LIST SCRIPT ARGUMENTS...
cat >"$scratch/bin/sbatch" <<'END'
#!/bin/sh
tasks=${1#--array=}
shift
case $tasks in *-*) tasks=$(seq -s, "${tasks%-*}" "${tasks#*-}") ;; esac
old=$IFS
IFS=,
set -f
count=$(set -- $tasks; echo $#)
for task in $tasks; do
    IFS=$old
    SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=$count sh "$@" || exit
done
END
chmod +x "$scratch/bin/sbatch"
PATH=$scratch/bin:$PATH
cd "$scratch"
mx synth -o model.safetensors --preset layernorm --quiet
mx analyze model.safetensors -r mxfp4 -r nvfp4 --json one.json --quiet
sbatch --array=1-5 "$script" model.safetensors -r mxfp4 -r nvfp4
mx merge parts/part-*.json --json all.json --quiet
cmp one.json all.json
rm parts/part-2.json parts/part-4.json all.json
code=0
mx merge parts/part-*.json --json all.json >commands 2>said || code=$?
[ $code = 1 ] && [ ! -e all.json ]
grep -q '2 of 5 parts are missing' said
N=5 sbatch --array=2,4 "$script" model.safetensors -r mxfp4 -r nvfp4
mx merge parts/part-*.json --json all.json --quiet
cmp one.json all.json
# Outside an array job the script does nothing.
code=0
sh "$script" model.safetensors 2>said || code=$?
[ $code = 2 ] && grep -q -- '--shard' said
