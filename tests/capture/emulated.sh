#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The emulator records itself; what was changed afterwards is found.
# emulated.sh MX_CAPTURE MX VECTORS HOWTO
set -eu
capture=$(realpath "$1")
mx=$(realpath "$2")
vectors=$(realpath "$3")
howto=$(realpath "$4")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fail() { echo "$*" >&2; exit 1; }

# expect CODE WORD COMMAND...: the output of the command contains the word.
expect() {
    want=$1 word=$2
    shift 2
    code=0
    "$@" >said 2>&1 || code=$?
    [ "$code" -eq "$want" ] || fail "exit code $code instead of $want: $*: $(cat said)"
    grep -q -e "$word" said || fail "no '$word' in: $(cat said)"
}

# turn FILE OFFSET: turns the lowest bit of the byte there.
turn() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    changed=$((byte / 2 * 2 + (byte + 1) % 2))
    printf "$(printf '\\%03o' "$changed")" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# Every kind of part, of several chips; the same seed gives the same bytes.
record() { "$capture" --quick --emulate "$1" --only "$2" -o "$3" 2>log || fail "$(cat log)"; }
record sm_90a wgmma.e4m3 hopper
record sm_90a wgmma.e4m3 again
record sm_100a cvt/ conversions
record sm_100a mxf4nvf4 fp4
record sm_120a .e2m3.e5m2. consumer
record sm_103a tcgen05_pair.mxf8f6f4.e4m3.e2m1 pairs
record sm_100a gemm/nvfp4.128x128 products
record sm_90a .e4m3.e5m2.128x128 tensor-scales
for folder in hopper conversions fp4 consumer pairs products tensor-scales; do
    expect 0 'all are equal' "$mx" verify $folder
    grep -q '"recorded_from_hardware":false' $folder/manifest.json || fail "$folder: hardware?"
    grep -q '"only":"[^"]' $folder/manifest.json || fail "$folder: all parts?"
    grep -q '"not_recorded":\[\]' $folder/manifest.json || fail "$folder: failures?"
done
expect 0 'fp8:promote=64' "$mx" verify tensor-scales/gemm/fp8.*.f32.safetensors
expect 0 'wgmma.fp8: e4m3' "$mx" verify tensor-scales/gemm/fp8_fast.*.f32.safetensors
for file in hopper/mma/*; do cmp "$file" "again/mma/$(basename "$file")"; done

# A dry run names the files and the bytes of their tensors, and writes nothing. planned CHIP: file
# and bytes of each. A file of tensors begins with the length of its header.
planned() { "$capture" --emulate "$@" --dry-run | awk '/^[a-z].*[.]safetensors/ { print $1, $2 }'; }
compare_with_plan() {
    [ -s plan ] || fail "a dry run without files"
    while read -r file bytes; do
        header=$(od -An -tu8 -N 8 "$1/$file" | tr -d ' ')
        size=$(($(wc -c <"$1/$file") - 8 - header))
        [ "$size" -eq "$bytes" ] || fail "$1/$file has $size bytes, not $bytes as planned"
    done <plan
}
planned sm_90a --quick --only wgmma.e4m3 -o nowhere >plan && compare_with_plan hopper
planned sm_100a --quick --only cvt/ >plan && compare_with_plan conversions
planned sm_100a --quick --only mxf4nvf4 >plan && compare_with_plan fp4
planned sm_100a --quick --only gemm/nvfp4.128x128 >plan && compare_with_plan products
[ ! -e nowhere ] || fail 'a dry run wrote a folder'
# The table of kinds is that of the document.
for chip in sm_90a sm_100a; do
    "$capture" --emulate $chip --dry-run | sed -n '/^kind /,$p' >kinds
    [ "$(wc -l <kinds)" -gt 5 ] || fail "few kinds: $(cat kinds)"
    while IFS= read -r line; do
        grep -Fxq -e "$line" "$howto" || fail "not in $howto: $line"
    done <kinds
done

# A part whose process dies, here of a file that is too large, costs nothing else and leaves nothing.
(ulimit -f 150; "$capture" --quick --emulate sm_90a \
    --only gemm/fp8.e4m3.e4m3 -o small 2>log) || fail "$(cat log)"
grep -q '^2 files in small, 2 parts not recorded' log || fail "$(cat log)"
[ "$(grep -c '"reason":' small/manifest.json)" -eq 2 ] || fail "$(cat small/manifest.json)"
[ -z "$(find small -name '.*' -type f)" ] || fail "left over: $(find small -name '.*' -type f)"
expect 0 '2 files compared: all are equal' "$mx" verify small
grep -q '^- not recorded in small: 2 parts' said || fail "$(cat said)"

# A replay of vector files gives their own outputs.
"$capture" --quick --emulate sm_100a --only replay. --replay "$vectors" -o replays 2>log ||
    fail "$(cat log)"
expect 0 'all are equal' "$mx" verify replays
planned sm_100a --only replay. --replay "$vectors" >plan && compare_with_plan replays
[ "$(find replays/mma -name 'replay.sm100*' | wc -l)" -gt 30 ] || fail "few replays: $(cat log)"

# Outputs without a model are kept and counted.
LC_ALL=C sed 's/"architecture":"sm_90"/"architecture":"sm_70"/' \
    hopper/mma/wgmma.e4m3.e4m3.f32.single.safetensors >one.safetensors
expect 0 'skipped: no accumulator model' "$mx" verify one.safetensors
grep -q 'best fit of one.safetensors: sm90.wgmma.fp8, 0 of' said || fail "$(cat said)"

# A difference in outputs: the last byte of a file is of an output.
file=hopper/mma/wgmma.e4m3.e4m3.f32.single.safetensors
cp $file one.safetensors
turn one.safetensors $(($(wc -c <one.safetensors) - 4))
expect 1 '1 differ' "$mx" verify one.safetensors
# One in the hash of outputs that are not stored.
cp conversions/cvt/e4m3.rn.safetensors one.safetensors
turn one.safetensors $(($(wc -c <one.safetensors) - 8))
expect 1 '1 differ' "$mx" verify one.safetensors
grep -q cells.hash said || fail "$(cat said)"

# Outputs are not compared if the GPU read the operands from other positions.
file=pairs/mma/tcgen05_pair.mxf8f6f4.e4m3.e2m1.e8m0x32.single.safetensors
LC_ALL=C sed 's/"placement":"documented"/"placement":"none found"/' $file >one.safetensors
cmp -s $file one.safetensors && fail "says nothing of where operands are"
expect 0 'did not read its operands' "$mx" verify one.safetensors
file=hopper/mma/wgmma.e4m3.e4m3.f32.single.safetensors

# Known products of small integers do not depend on the model.
LC_ALL=C sed 's/"known_products":"given",/"known_products":"not given",/; s/"emulated sm_90a"/"emulated sm"/' \
    hopper/mma/wgmma.e4m3.e4m3.f32.single.safetensors >one.safetensors
expect 0 'wgmma.fp8: e4m3 x e4m3, small whole' "$mx" verify one.safetensors

# A model that is another shows.
expect 1 'differ' "$mx" verify $file --accumulate sm90.wgmma.fp8:fraction_bits=14

# Other inputs than those recorded, and those of another generator.
LC_ALL=C sed 's/"seed":"1"/"seed":"2"/' $file >one.safetensors
expect 3 'other inputs' "$mx" verify one.safetensors
LC_ALL=C sed 's#"mma-inputs/1"#"mma-inputs/0"#' $file >one.safetensors
expect 3 'generator' "$mx" verify one.safetensors

# Probes that the operands do not have, and more inputs than anybody makes.
nvfp4=fp4/mma/tcgen05.mxf4nvf4.e2m1.e2m1.ue4m3x16.single.safetensors
LC_ALL=C sed 's/"scale_format":"ue4m3"/"scale_format":"none" /' $nvfp4 >one.safetensors
expect 3 'there are 0' "$mx" verify one.safetensors
LC_ALL=C sed 's/"hash_tiles":"64"/"hash_tiles":"65"/' $nvfp4 >one.safetensors
expect 3 'other inputs' "$mx" verify one.safetensors
LC_ALL=C sed 's/"random_inputs":"4096"/"random_inputs":"99999"/; s/"mx_capture /"mx_capture/' \
    conversions/cvt/e2m1.rs.safetensors >one.safetensors
expect 3 'fewer values' "$mx" verify one.safetensors

# A folder contains what its manifest lists, or is refused.
turn $file $(($(wc -c <$file) - 4))
expect 3 'SHA-256' "$mx" verify hopper
printf 0 >>$file
expect 3 'bytes; the manifest' "$mx" verify hopper
mv $file elsewhere.safetensors
expect 3 'is in the manifest, but' "$mx" verify hopper
cp again/mma/$(basename $file) hopper/mma/
expect 0 'all are equal' "$mx" verify hopper
cp one.safetensors hopper/cvt/
expect 3 'not in the manifest' "$mx" verify hopper
sed 's#mma/wgmma#mma/../wgmma#' again/manifest.json >manifest && mv manifest again/manifest.json
expect 3 'not a file of a recording' "$mx" verify again

# Folders and words that do not exist.
expect 3 'not empty' "$capture" --quick --emulate sm_90a -o fp4
expect 2 'sm_100a' "$capture" --quick --emulate sm_100 -o new
expect 2 'no part has' "$capture" --quick --emulate sm_90a --only tcgen05 -o new
[ ! -e new ] || fail 'a folder of nothing'
expect 2 '' "$capture" --nonsense
