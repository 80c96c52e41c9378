#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mx analyze, mx compare, mx cluster and mx plan make the same decision on every tensor of a model,
# and the first three state it in the same line.
#
#   agreement_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
here=$(realpath "$2")/tests/cli
. "$here/fixtures.sh"
vectors=$(realpath "$2")/datasets/vectors
fail() { echo "$*" >&2; exit 1; }

# decisions FILE: "TENSOR RECIPE" of mx.report/3 or mx.plan/1, sorted; the stored precision has a
# single name.
decisions() {
    sed -n '/^"risks":/,$d;s/^{.*"tensor":"\([^"]*\)".*"recipe":\("[^"]*"\|null\).*/\1 \2/p' "$1" |
        sed 's/"stored"/"keep"/' | sort
}

# check NAME FILE: every command with its defaults.
check() {
    for command in analyze compare cluster; do
        "$mx" "$command" "$2" --json "$command.json" --summary >"$command.line" 2>errors ||
            fail "$1: mx $command: $(cat errors)"
        "$mx" report "$command.json" --json "$command.report" -q ||
            fail "$1: mx report on what mx $command wrote"
        decisions "$command.report" >"$command.says"
    done
    "$mx" plan analyze.json -o plan.json -q || fail "$1: mx plan"
    # A plan does not list tensors that no run measured: indices and masks.
    decisions plan.json >plan.says
    [ "$(grep -c . <plan.says)" -gt 1 ] || fail "$1: the plan decides on nothing"
    cut -d' ' -f 1 plan.says >planned
    grep -F -x -f plan.says analyze.says | cut -d' ' -f 1 | cmp -s - planned ||
        fail "$1: mx plan and mx analyze differ: $(diff analyze.says plan.says)"
    for command in compare cluster; do
        cmp -s analyze.says "$command.says" ||
            fail "$1: mx $command and mx analyze differ: $(diff analyze.says "$command.says")"
        cmp -s analyze.line "$command.line" ||
            fail "$1: their lines differ: $(cat analyze.line "$command.line")"
    done
    grep -q '"mx' plan.says || fail "$1: nothing is quantized"
}

for preset in tiny linear; do
    "$mx" synth --preset $preset -o $preset.safetensors -q || fail "mx synth"
    check $preset $preset.safetensors
done

# Values of a trained model: its nine matrices are quantized, all other tensors keep their
# precision.
check excerpt "$vectors/excerpts/memory_gated_mlp.safetensors"
[ "$(grep -c '"mxfp8:scale=rceil"' analyze.says)" -eq 9 ] || fail "excerpt: $(cat analyze.says)"
if grep -e '[.]ln' -e '[.]b_' -e bias -e embedding -e mask analyze.says | grep -v '"keep"'; then
    fail "excerpt: norms, biases, embeddings or masks are quantized"
fi

# A normal projection, and one of 434 and 436, of which E4M3 makes 448: every block saturates.
{
    k=0
    while [ $k -lt 1024 ]; do
        byte $((217 + k % 2))
        byte 67
        k=$((k + 1))
    done
    k=0
    while [ $k -lt 1024 ]; do
        byte $((k * 37 % 256))
        byte $((62 + k % 2 + k / 2 % 2 * 128))
        k=$((k + 1))
    done
} >data
safetensors '{"model.layers.0.mlp.down_proj.weight":{"dtype":"BF16","shape":[32,32],"data_offsets":[0,2048]},
"model.layers.0.mlp.up_proj.weight":{"dtype":"BF16","shape":[32,32],"data_offsets":[2048,4096]}}' data >damaged.safetensors
check damaged damaged.safetensors
grep -q 'down_proj.weight "keep"' plan.says || fail "the damaged projection is quantized"
grep -q 'up_proj.weight "mxfp8:scale=rceil"' plan.says || fail "the healthy projection is not"
"$mx" report analyze.json | sed -n '/^Largest risks/{n;p;}' >first
grep -q '^- model.layers.0.mlp.down_proj.weight has 100 % of its blocks saturated' first ||
    fail "the damaged projection does not lead the risks: $(cat first)"
code=0
"$mx" gate analyze.json --rule policy -q || code=$?
[ $code -eq 1 ] || fail "mx gate passes the damaged projection"
