#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Processes started by mpirun divide a run and write the same bytes. mpi_test.sh
# MX SOURCE
set -eu
mx=$(realpath "$1")
if ! "$mx" version | grep -q '^MPI  *yes'; then
    echo 'skipped: mx was built without MPI (libopenmpi-dev)'
    exit 77
fi
if ! command -v mpirun >/dev/null; then
    echo 'skipped: no mpirun (openmpi-bin)'
    exit 77
fi
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
copies() {
    n=$1
    shift
    mpirun --oversubscribe --bind-to none -n "$n" "$mx" "$@"
}
"$mx" synth -o model.safetensors --preset layernorm --quiet
same() {
    "$mx" "$@" --json one.json --csv one.csv --html one.html >one.txt
    for n in 1 2 3; do
        copies $n "$@" --json all.json --csv all.csv --html all.html >all.txt
        for ending in json csv html txt; do
            cmp one.$ending all.$ending
        done
        rm all.*
    done
}
same analyze model.safetensors -t '*layers.0.*' --threads 1
same cluster model.safetensors -t '*layers.0.*norm*' --threads 1
# Dumps and arrays, whose parts are temporary files.
"$mx" synth -o later.safetensors --preset layernorm --seed 2 --quiet
same diff model.safetensors later.safetensors -t '*layers.0.*' -r mxfp4 --threads 1
mkdir arrays
for form in '--packed -r nvfp4' '--keep-rest -r mxfp4'; do
    # shellcheck disable=SC2086
    "$mx" quantize model.safetensors $form -o one.safetensors --quiet
    for n in 1 2 3; do
        # shellcheck disable=SC2086
        copies $n quantize model.safetensors $form -o arrays/all.safetensors --threads 1 --quiet
        cmp one.safetensors arrays/all.safetensors
        [ "$(ls -A arrays)" = all.safetensors ]
        rm arrays/all.safetensors
    done
done
mkdir indexed
"$mx" quantize model.safetensors -r mxfp4 --packed -o indexed/one.safetensors.index.json --max-shard-size 1MB --quiet
copies 2 quantize model.safetensors -r mxfp4 --packed -o arrays/one.safetensors.index.json \
    --max-shard-size 1MB --quiet
diff -r indexed arrays
rm arrays/*
if copies 2 quantize model.safetensors -r mxfp4:axis=9 -o arrays/all.safetensors --quiet >out 2>said; then
    echo 'mx quantize: no failure' >&2
    exit 1
fi
[ "$(ls -A arrays)" = '' ]
"$mx" compare model.safetensors -t '*layers.0.*norm*' --element e2m1 --json one.json --quiet
copies 2 compare model.safetensors -t '*layers.0.*norm*' --element e2m1 --json all.json --quiet
cmp one.json all.json

# refused TEXT ARGUMENTS...: the job fails with TEXT and writes nothing.
refused() {
    text=$1
    shift
    rm -f all.json
    if copies 2 "$@" --json all.json --quiet >out 2>said; then
        echo "mx $*: no failure" >&2
        exit 1
    fi
    grep -q "$text" said
    [ ! -e all.json ]
}
refused 'cannot open' analyze nowhere.safetensors
refused "mpirun divides the run" analyze model.safetensors --shard 1/2
same analyze model.safetensors -t '*layers.[01].*' --group layer,role --threads 1
refused 'start one copy' gate one.json --rule 'nrmse<1'
refused 'nosuch' analyze model.safetensors -r mxfp4:scale=nosuch
