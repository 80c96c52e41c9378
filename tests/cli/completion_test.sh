#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Completion of command lines: the words from mx, and the behaviour of bash, zsh and fish if
# installed.
# Usage: completion_test.sh MX SOURCE_DIR
set -u
mx=$(realpath "$1")
scripts=$(realpath "$2")/apps/mx/completions
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ln -s "$mx" "$scratch/mx"
PATH=$scratch:$PATH
export PATH
cd "$scratch" || exit 2
mx synth --preset linear -o model.safetensors -q
bad=0

# same WHAT EXPECTED FOUND
same() {
    [ "$2" = "$3" ] && return
    printf '%s: expected\n%s\nfound\n%s\n' "$1" "$2" "$3"
    bad=1
}
# offered WORD...: the words from mx, on one line
offered() { mx --complete "$@" | cut -f 1 | tr '\n' ' '; }

same commands 'runs ' "$(offered ru)"
same options '--scale-format --scale ' "$(offered compare model.safetensors --scale)"
same presets 'mxfp4 mxfp4_e3m0 mxfp4_e1m2 mxfp4: ' "$(offered analyze -r mxfp4)"
same keys 'nvfp4:round= ' "$(offered analyze -r nvfp4:ro)"
same values 'mxfp4:scale=even,round=up ' "$(offered quantize x -r mxfp4:scale=even,round=u)"
same tensors 'model.linear.weight ' "$(offered analyze model.safetensors -t m)"
same models 'fp32.fma fp32.pairwise ' "$(offered gemm a b -m fp32)"
same backends 'avx2 avx512 ' "$(offered quantize x --backend av)"
same files '' "$(offered analyze mod)"
same 'an unknown command' '' "$(offered nonsense --)"
same nothing '' "$(mx --complete)"
printf 'x' >damaged.safetensors
same 'a damaged file' '' "$(offered analyze damaged.safetensors -t '')"
# Every recipe key continues with values, or takes a number or a path.
for key in $(mx --complete analyze -r mxfp4: | cut -f 1); do
    case $key in
    *seed= | *bits= | *axis= | *bound= | *reach= | *size= | *file=)
        same "$key" '' "$(offered analyze -r "$key")"
        ;;
    *) [ -n "$(offered analyze -r "$key")" ] || same "$key" values '' ;;
    esac
done

if command -v bash >/dev/null; then
    in_bash() {
        bash -c '. "$0"/mx.bash; COMP_LINE=$1; COMP_POINT=${#1}; _mx; echo "${COMPREPLY[*]}"' "$scripts" "$1"
    }
    same 'bash: a command' 'analyze' "$(in_bash 'mx ana')"
    same 'bash: after the break at :' 'scale= scale_format=' "$(in_bash 'mx analyze x -r mxfp4:sc')"
    same 'bash: after the break at =' 'floor floor-bump' "$(in_bash 'mx analyze x -r mxfp4:scale=fl')"
    same 'bash: a new word' 'activations.linear.input model.linear.weight gradients.linear.output' \
        "$(in_bash 'mx analyze model.safetensors --tensor ')"
fi
if command -v fish >/dev/null; then
    in_fish() { HOME=$scratch fish -N -c 'source $argv[1]/mx.fish; complete -C $argv[2]' "$scripts" "$1" | cut -f 1; }
    same 'fish: a command' 'analyze' "$(in_fish 'mx ana')"
    same 'fish: a value' 'mxfp4:scale=rceil' "$(in_fish 'mx analyze x -r mxfp4:scale=rc')"
    same 'fish: a file' 'model.safetensors' "$(in_fish 'mx analyze model')"
fi
if command -v zsh >/dev/null; then
    same 'zsh: syntax' '' "$(zsh -n "$scripts/_mx" 2>&1)"
fi
exit $bad
