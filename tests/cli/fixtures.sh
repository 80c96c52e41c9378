# SPDX-License-Identifier: Apache-2.0
# Small files for the transcripts, made byte by byte so that they need nothing but sh, and copies of
# fixtures of the readers. The caller sets `here` to this folder.

byte() { printf "\\$(printf %03o "$1")"; }

# The number $1 as eight bytes, least significant first.
le64() {
    n=$1
    for _ in 1 2 3 4 5 6 7 8; do
        byte $((n % 256))
        n=$((n / 256))
    done
}

# Hexadecimal digits, two per byte, in the order given.
hex() {
    for pair in $(printf '%s' "$*" | tr -d ' ' | sed 's/../& /g'); do byte $((0x$pair)); done
}

# safetensors HEADER DATA-FILE
safetensors() {
    le64 "$(printf '%s' "$1" | wc -c)"
    printf '%s' "$1"
    cat "$2"
}

# norm.weight: 1.5 + k/128, k = 0..63, in bf16: a cluster just under 2. proj.weight: 1 to 12.
{
    k=0
    while [ $k -lt 64 ]; do
        byte $((192 + k))
        byte $((0x3f))
        k=$((k + 1))
    done
    hex 803f 0040 4040 8040 a040 c040 e040 0041 1041 2041 3041 4041
    hex 00010001 003c
} >data
safetensors '{"__metadata__":{"made by":"tests/cli"},
"norm.weight":{"dtype":"BF16","shape":[2,32],"data_offsets":[0,128]},
"proj.weight":{"dtype":"BF16","shape":[3,4],"data_offsets":[128,152]},
"mask":{"dtype":"BOOL","shape":[4],"data_offsets":[152,156]},
"scale":{"dtype":"F16","shape":[],"data_offsets":[156,158]},
"empty":{"dtype":"F32","shape":[0,4],"data_offsets":[158,158]}}' data >small.safetensors

# weight: 256 ones in bf16; mask: -1e5, which holds nearly all squares.
{
    printf '\200\077%.0s' $(seq 256)
    hex 0050c3c7
} >data
safetensors '{"weight":{"dtype":"BF16","shape":[4,64],"data_offsets":[0,512]},
"mask":{"dtype":"F32","shape":[],"data_offsets":[512,516]}}' data >masked.safetensors

# Names that would be patterns: six values each.
hex 0000803f 00000040 00004040 00008040 0000a040 0000e040 >six
cat six six six >data
rm six
safetensors '{"w[0]":{"dtype":"F32","shape":[1,6],"data_offsets":[0,24]},
"w0":{"dtype":"F32","shape":[1,6],"data_offsets":[24,48]},
"w*":{"dtype":"F32","shape":[1,6],"data_offsets":[48,72]}}' data >patterns.safetensors

# A name that would colour the terminal and break a Markdown table and a CSV line; NaN, Inf, 1, 2.
hex 0000c07f 0000807f 0000803f 00000040 >data
safetensors '{"\u001b[31m|`a,\"b\n":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' data >odd.safetensors

# The block of microxcaling issue 4: 960 and 957 as F32.
hex 00007044 00406f44 >issue4.bin

# Vectors: 1 2 3 4 under mxfp4 in blocks of four, correct, with a wrong code and a zero instead of 4,
# and in kinds that are refused. vectors KIND CODES LAST-VALUE
vectors() {
    hex 0000803f 00000040 00004040 00008040 0000803f 00000040 00004040 "$3" 7f "$2" >data
    safetensors '{"__metadata__":{'"$1"'"recipe":"mxfp4:block=1x4"},
"input":{"dtype":"F32","shape":[1,4],"data_offsets":[0,16]},
"dequant":{"dtype":"F32","shape":[1,4],"data_offsets":[16,32]},
"scale_code":{"dtype":"U8","shape":[1],"data_offsets":[32,33]},
"code":{"dtype":"U8","shape":[1,4],"data_offsets":[33,37]}}' data
}
mkdir captured captured/right
vectors '"kind":"blocks","contract":"code scale_code dequant",' 02040506 00008040 >captured/right/four.safetensors
vectors '"kind":"blocks","contract":"code scale_code dequant",' 02040706 00000080 >captured/wrong.safetensors
vectors '"kind":"mma",' 02040506 00008040 >captured/mma.safetensors
vectors '"kind":"blokcs",' 02040506 00008040 >captured/misspelt.safetensors
vectors '' 02040506 00008040 >captured/unnamed.safetensors
vectors '"kind":"blocks","contract":"code zero_point",' 02040506 00008040 >captured/contract.safetensors

# Three steps of a training: a norm whose largest gain nears 1.75, one that passes it, and a weight
# of 1 2 3 4, 1 2 3 4 in which two elements move and one of them moves back. step NUMBER GAIN GAIN
# ELEMENT ELEMENT
step() {
    hex 803f a03f a03f "$2" 803f a03f a03f "$3" 803f 0040 4040 "$4" 803f 0040 4040 "$5" >data
    safetensors '{"layers.0.norm.weight":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]},
"layers.1.norm.weight":{"dtype":"BF16","shape":[4],"data_offsets":[8,16]},
"layers.0.up.weight":{"dtype":"BF16","shape":[2,4],"data_offsets":[16,32]}}' data >"steps/step$1.safetensors"
}
mkdir steps
step 100 c03f c03f 8040 8040
step 200 c83f d03f c040 0041
step 300 d03f f03f 8040 0041

# A header with a false size, and a truncated file.
le64 1000000000000 >liar.safetensors
head -c 300 small.safetensors >short.safetensors
rm data

# Quantized tensors, with codes and scales in separate files: experts (MXFP4 in blocks, codes 0 to 15
# under 2^0 and 2^1), proj (NVFP4 under a tensor scale of 1/2) and odd, whose scales do not fit.
mkdir shards
fp4='1032547698badcfe'
hex $fp4 $fp4 $fp4 $fp4 $fp4 $fp4 >data
safetensors '{"experts_blocks":{"dtype":"U8","shape":[1,2,16],"data_offsets":[0,32]},
"proj.weight":{"dtype":"U8","shape":[1,8],"data_offsets":[32,40]},
"odd_blocks":{"dtype":"U8","shape":[1,8],"data_offsets":[40,48]}}' data >shards/1.safetensors
hex 7f80 38 0000003f 7f >data
safetensors '{"experts_scales":{"dtype":"U8","shape":[1,2],"data_offsets":[0,2]},
"proj.weight_scale":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[2,3]},
"proj.weight_scale_2":{"dtype":"F32","shape":[],"data_offsets":[3,7]},
"odd_scales":{"dtype":"U8","shape":[1],"data_offsets":[7,8]}}' data >shards/2.safetensors
rm data

# A weight of 1 2 3 4, a buffer of positions and a count with squares far larger than all others, and
# codes with scales that do not fit.
hex 0000803f 00000040 00004040 00008040 0000000000000000 0100000000000000 0001000000000000 e803000000000000 00010203 7f80 >data
safetensors '{"w":{"dtype":"F32","shape":[1,4],"data_offsets":[0,16]},
"position_ids":{"dtype":"I64","shape":[1,3],"data_offsets":[16,40]},
"steps":{"dtype":"I64","shape":[],"data_offsets":[40,48]},
"codes.weight":{"dtype":"I8","shape":[1,4],"data_offsets":[48,52]},
"codes.scale":{"dtype":"F8_E8M0","shape":[1,2],"data_offsets":[52,54]}}' data >indices.safetensors
rm data

# Written by PyTorch (tests/io/data/README.md).
mkdir torch
cp -r "$here"/../io/data/torch_* torch/

# Written by the packages of these formats (tests/io/data/README.md).
mkdir formats
cp "$here"/../io/data/gguf* "$here"/../io/data/onnx* "$here"/../io/data/keras* formats/
cp "$here"/../io/data/deepseek_v4.safetensors "$here"/../io/data/layouts.safetensors \
    "$here"/../io/data/gguf_blocks.gguf formats/

# A language model of random weights (datasets/vectors/README.md), and 40 token ids.
mkdir lm
cp "$here"/../../datasets/vectors/eval/llama-gguf/model.gguf lm.gguf
cp "$here"/../../datasets/vectors/eval/llama/config.json \
    "$here"/../../datasets/vectors/eval/llama/model.safetensors lm/
mkdir formats/moe
cp "$here"/../../datasets/vectors/eval/qwen3moe/config.json \
    "$here"/../../datasets/vectors/eval/qwen3moe/model.safetensors formats/moe/
hex 0300 1300 2d00 5100 1f00 5700 3900 2500 1b00 1b00 2500 3900 5700 1f00 5100 2d00 1300 0300 5d00 \
    0100 0f00 2700 4900 1500 4b00 2b00 1500 0900 0700 0f00 2100 3d00 0300 3300 0d00 5100 3f00 3700 \
    3900 4500 >data
safetensors '{"ids":{"dtype":"U16","shape":[40],"data_offsets":[0,80]}}' data >ids.safetensors
rm data
