#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every command of docs/reproduce (yang.md, su.md, stages.md) and prints their tables. What it
# reads it makes itself: checkpoints of `mx synth`, and a few raw files whose statistics are known
# exactly.
# Given a folder, it also measures those public checkpoints of datasets/manifest.tsv that lie in it,
# at most one folder deeper, under any name (they are known by their SHA-256): datasets/fetch.sh
# gets them. The figures do not depend on the machine.
#
#   scripts/reproduce.sh [FOLDER [MX]]          MX: the program, build/release/mx if not given
set -euf
cd "$(dirname "$0")/.."
export LC_ALL=C
[ $# -le 2 ] || { echo 'usage: scripts/reproduce.sh [FOLDER [MX]]' >&2; exit 2; }
folder=${1:-}
mx=$(realpath "${2:-build/release/mx}")
manifest=$PWD/datasets/manifest.tsv
[ -x "$mx" ] || { echo "no program $mx; build it first" >&2; exit 3; }
if [ -n "$folder" ]; then
    [ -d "$folder" ] || { echo "$folder is not a folder" >&2; exit 3; }
    folder=$(realpath "$folder")
fi
rm -rf build/reproduce && mkdir -p build/reproduce
cd build/reproduce

part() { printf '\n\n==== %s\n' "$*"; }
mx() { "$mx" "$@"; }
# Prints a command as the pages do, and runs it.
show() {
    printf '\n$ mx'
    for word in "$@"; do
        case $word in *[*\ ]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    mx "$@"
}

# ---- what is read ----

# Little-endian F32 of normal numbers (and zero), one per line, by arithmetic that is exact in
# double.
f32() {
    awk '{
        x = $1; sign = 0; bits = 0
        if (x < 0) { sign = 128; x = -x }
        if (x > 0) {
            for (e = 127; x >= 2; ++e) x /= 2
            for (; x < 1; --e) x *= 2
            m = (x - 1) * 8388608; low = int(m); rest = m - low
            if (rest > 0.5 || (rest == 0.5 && low % 2)) ++low
            bits = e * 8388608 + low
        }
        printf "\\%03o\\%03o\\%03o\\%03o", bits % 256, int(bits / 256) % 256,
            int(bits / 65536) % 256, sign + int(bits / 16777216)
        if (NR % 1024 == 0) print ""
    } END { if (NR % 1024) print "" }' | while read -r line; do
        # shellcheck disable=SC2059 # the bytes are the format
        printf "$line"
    done
}
repeat() { awk -v x="$1" -v n="$2" 'BEGIN { for (i = 0; i < n; ++i) print x }'; }

# Standard normal numbers: pairs of Box and Muller on two combined generators of L'Ecuyer (1988).
normal() {
    awk -v n="$1" 'function uniform(d) {
        a = a * 40014 % 2147483563; b = b * 40692 % 2147483399
        d = (a - b) % 2147483562
        return (d <= 0 ? d + 2147483562 : d) / 2147483563
    }
    BEGIN {
        a = 12345; b = 67890
        for (i = 0; i < n; i += 2) {
            r = sqrt(-2 * log(uniform())); t = 6.283185307179586 * uniform()
            printf "%.17g\n%.17g\n", r * cos(t), r * sin(t)
        }
    }'
}
# Magnitudes of one binade whose logarithms are uniform, each twice: blocks of one magnitude.
log_uniform() {
    awk -v n="$1" 'BEGIN {
        for (i = 0; i < n; ++i) { x = exp(log(2) * (i + 0.5) / n); printf "%.17g\n%.17g\n", x, x }
    }'
}

normal 1048576 | f32 >normal.bin
log_uniform 65536 | f32 >loguniform.bin
repeat 0.99 32 | f32 >block099.bin
for preset in small layernorm; do
    mx synth --preset $preset --dtype f32 -o $preset.safetensors --quiet
done
mx synth --preset small --dtype f32 --seed 1 -o small1.safetensors --quiet

# llama2.c's first layout (28 bytes of header, then the matrices one after another) with the header
# of a safetensors file before it. What follows the weights are tables of rotary angles.
llama2c_as_safetensors() {
    awk 'function add(name, rows, cols, n) {
        n = 4 * rows * (cols ? cols : 1)
        printf "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%d%s],\"data_offsets\":[%d,%d]}",
            at ? "," : "{", name, rows, cols ? "," cols : "", at, at + n
        at += n
    }
    function each(name, rows, cols, i) {
        for (i = 0; i < 5; ++i) add("layers." i "." name ".weight", rows, cols)
    }
    BEGIN {
        add("tok_embeddings.weight", 512, 64)
        each("attention_norm", 64); each("attention.wq", 64, 64); each("attention.wk", 32, 64)
        each("attention.wv", 32, 64); each("attention.wo", 64, 64); each("ffn_norm", 64)
        each("feed_forward.w1", 172, 64); each("feed_forward.w2", 64, 172)
        each("feed_forward.w3", 172, 64); add("norm.weight", 64)
        print "}"
    }' | tr -d '\n' >header
    n=$(wc -c <header)
    # shellcheck disable=SC2059
    printf "$(printf '\\%03o\\%03o' $((n % 256)) $((n / 256)))\\0\\0\\0\\0\\0\\0"
    cat header
    tail -c +29 "$1" | head -c 1040128
}

real=
if [ -n "$folder" ]; then
    find "$folder" -maxdepth 2 -type f -size -16000k -exec sha256sum {} + >sums
    for name in stories260k minigrid-dt-gatedmlp magika-begonly-v2-1 g2p-en textgenrnn; do
        row=$(grep "^$name	" "$manifest")
        found=$(grep "^$(echo "$row" | cut -f 4)" sums | head -n 1 | cut -c 67-)
        if [ -z "$found" ]; then
            echo "$name is not in $folder; datasets/fetch.sh gets it" >&2
            continue
        fi
        file=$(echo "$row" | cut -f 2)
        case $name in
            stories260k) file=$name.safetensors; llama2c_as_safetensors "$found" >"$file" ;;
            *) ln -s "$found" "$file" ;;
        esac
        real="$real $file"
    done
fi

# ---- tables over many inputs ----

# The inputs of a table by the names of its columns, and what `mx` is told of each: a file, and the
# tensors of it that are meant. syn-w, syn-a, syn-g and syn-n are weights, activations, gradients and
# norms of one synthetic checkpoint; norms of others have names that begin with n-.
inputs="normal syn-w syn-a syn-g$real"
arguments() {
    case $1 in
        normal) echo normal.bin --dtype F32 --shape 256x4096 ;;
        syn-w) echo small.safetensors --role weight ;;
        syn-a) echo small.safetensors --role activation ;;
        syn-g) echo small.safetensors --role gradient ;;
        syn-n) echo small.safetensors --role norm ;;
        n-layer*) echo layernorm.safetensors --role norm ;;
        n-magika*) echo "${1#n-}" --tensor 'model/layer_normalization/Reshape:0' \
            --tensor 'model/layer_normalization_1/mul/*' ;;
        n-*) echo "${1#n-}" --role norm ;;
        magika*) echo "$1" --tensor '*MatMul*' --tensor '*Tensordot/ReadVariableOp*' ;;
        *) echo "$1" --role weight,embedding ;;
    esac
}

# over COMMAND ARGUMENTS: `mx COMMAND` of every input with these arguments.
over() {
    command=$1
    shift
    printf '\n$ mx %s INPUT' "$command"
    printf ' %s' "$@"
    echo
    for input in $inputs; do
        # shellcheck disable=SC2046 # a list of words
        mx "$command" $(arguments "$input") "$@" --json "$input.json" --quiet
    done
}
sweep() { over compare "$@"; }
# Of lines "row TAB column TAB value": a table of values times `scale`, rows in their first order.
table() {
    awk -F '\t' -v scale="$1" -v format="$2" -v inputs="$inputs" '
        BEGIN { n = split(inputs, column, " ") }
        !($1 in seen) { seen[$1]; row[++rows] = $1 }
        { value[$1, $2] = $3; if (length($1) > wide) wide = length($1) }
        END {
            printf "%-" wide "s", ""
            for (c = 1; c <= n; ++c) {
                name = column[c]
                sub(/^n-/, "", name)
                sub(/260k.*|-dt.*|-begonly.*|[.][a-z].*/, "", name)
                printf " %8s", substr(name, 1, 8)
            }
            print ""
            for (r = 1; r <= rows; ++r) {
                printf "%-" wide "s", row[r]
                for (c = 1; c <= n; ++c) {
                    v = value[row[r], column[c]]
                    if (v == "" || v == "null") printf " %8s", "-"
                    else printf " %8s", sprintf(format, v * scale)
                }
                print ""
            }
        }'
}
# The figure `name` of a JSON object in a line, as awk functions.
member='function member(line, name, at) {
        at = index(line, "\"" name "\":")
        if (!at) return ""
        line = substr(line, at + length(name) + 3)
        if (substr(line, 1, 1) == "\"") { line = substr(line, 2); sub(/".*/, "", line) }
        else sub(/[,}].*/, "", line)
        return line
    }'
# pick TITLE FIGURE SCALE FORMAT: a figure of the last sweep's ranking, by recipe and input.
pick() {
    printf '\n%s\n' "$1"
    for input in $inputs; do
        awk -v input="$input" -v name="$2" "$member"'
            /^[{]"rank":/ { print member($0, "recipe") "\t" input "\t" member($0, name) }
        ' "$input.json"
    done | table "$3" "$4"
}
# mean TITLE EXPRESSION SCALE FORMAT [WEIGHT]: of the last run, the mean over tensors (and seeds) of
# an awk expression of figures f(NAME); with every tensor counted as often as WEIGHT says.
mean() {
    printf '\n%s\n' "$1"
    for input in $inputs; do
        awk -v input="$input" "$member"'
            function f(name) { return member($0, name) + 0 }
            function size(x) { return x < 0 ? -x : x }
            /^[{]"file":.*"elements":/ && !/"nrmse":null/ {
                r = member($0, "recipe")
                sub(/,seed=[0-9]*/, "", r)
                if (!(r in n)) { order[++rows] = r; n[r] = 0 }
                weight = '"${5:-1}"'
                n[r] += weight; sum[r] += weight * ('"$2"')
            }
            END {
                for (i = 1; i <= rows; ++i) {
                    r = order[i]
                    print r "\t" input "\t" (n[r] ? sum[r] / n[r] : "null")
                }
            }
        ' "$input.json"
    done | table "$3" "$4"
}
# phase ELEMENT RECIPE RECIPE: R-MSE under the second recipe over that under the first, as the
# tensors are and over the sixteen phases.
phase() {
    rules="$(echo "$2" | sed 's/^[^=]*$/floor/; s/.*=//'),$(echo "$3" | sed 's/^[^=]*$/floor/; s/.*=//')"
    sweep --element "$1" --scale "$rules" --phase-sweep
    printf '\nR-MSE of %s over that of %s\n' "$3" "$2"
    for input in $inputs; do
        sed -n '/^"phase":/p' "$input.json" | awk -v input="$input" -v first="$2" "$member"'
            function row(name, x) { print name "\t" input "\t" x }
            {
                win = 1 + member($0, "win"); least = member($0, "least_ratio")
                greatest = member($0, "greatest_ratio")
                if (member($0, "best") != first) { x = 1 / least; least = 1 / greatest; greatest = x; win = 1 / win }
                row("as they are", win); row("least over the phases", least)
                row("greatest over the phases", greatest)
            }'
    done | table 1 %.4f
}

# ---- docs/reproduce/yang.md ----

part 'Element formats at equal width'
sweep --element e4m3,e5m2,int8,e2m3,e3m2,e2m1,e3m0,int4 --scale even
pick 'SQNR, dB' sqnr_db 1 %.2f

part 'Scale rules'
for element in e4m3 e5m2 e2m3 e3m2 e2m1 e3m0 int8; do
    sweep --element $element --scale floor,ceil,even,rceil
    pick 'R-MSE over that of floor' rmse_ratio 1 %.4f
    pick 'Tensors in which no rule has a smaller R-MSE' wins 1 %.0f
    case $element in
        e4m3 | e2m1 | e3m0) pick 'Elements that overflow, %' overflow_rate 100 %.2f ;;
    esac
done

part 'Scale rules on standard normal numbers'
show analyze normal.bin --dtype F32 --shape 256x4096 -r mxfp4 -r mxfp4:scale=ceil \
    -r mxfp4:scale=even -r mxfp4:scale=rceil --decompose

part 'Standard normal numbers that overflow under even, %: the closed form for blocks of 32'
awk 'function within(m, i, n, s) {  # P(|X| < m), by the rule of Simpson
        if (m > 12) return 1
        n = 2000
        for (i = 0; i <= n; ++i)
            s += (i == 0 || i == n ? 1 : i % 2 ? 4 : 2) * exp(-(m * i / n) ^ 2 / 2)
        return 2 * s * m / n / 3 / sqrt(8 * atan2(1, 1))
    }
    # Elements beyond `from` in blocks whose maximum lies between it and `to`, in any binade.
    function overflow(from, to, e, low, high, share) {
        for (e = -12; e < 6; ++e) {
            low = within(from * 2 ^ e); high = within(to * 2 ^ e)
            share += (high - low) * high ^ 31
        }
        return share
    }
    BEGIN {
        printf "e2m1 %.3f\ne3m0 %.3f\n", 100 * overflow(1.5, 1.75), 100 * overflow(1, 1.5)
    }'

part 'Block maxima of uniform logarithms that overflow'
everything=$inputs
inputs=loguniform
for element in e2m1 e2m3 e3m2 e4m3 e5m2 int8 e3m0; do
    mx compare loguniform.bin --dtype F32 --shape 131072 --element $element \
        --scale floor,ceil,even,rceil --block 1x2 --json loguniform.json --quiet
    pick "$element, %" overflow_rate 100 %.2f | sed -n '/^mx/p'
done
inputs=$everything

part 'Rounding'
for element in e4m3 e2m1; do
    sweep --element $element --scale rceil --round rtne,stochastic --seeds 8
    pick 'R-MSE over that of rtne' rmse_ratio 1 %.4f
    pick 'Half-width of its 95 % interval' rmse_ratio_interval 1 %.5f
    mean 'Mean of abs(gain - 1), %' 'size(f("gain") - 1)' 100 %.3f
    mean 'Mean of abs(mean_error) over rms, %' 'size(f("mean_error")) / f("rms")' 100 %.4f
done

part 'Symmetric and asymmetric'
for element in e4m3 e2m1 int4; do
    sweep --element $element --scale even --offset none,fp16
    pick 'R-MSE over that of symmetric' rmse_ratio 1 %.4f
done
pick 'Bits per element' bits_per_element 1 %.3f

part 'Block size and organisation'
for recipe in mxfp8:scale=even mxfp8:scale=rceil mxfp4:scale=even; do
    sweep -r $recipe --block 1x8,1x16,1x32,1x64,1x128,32x1,8x4,4x8,4x4,16x16 --baseline $recipe
    pick 'R-MSE over that of 1x32' rmse_ratio 1 %.4f
    pick 'Bits per element' bits_per_element 1 %.3f
done

part 'INT4'
sweep -r mxint4 -r mxint4:int_emax=log2max -r mxint4:int_emax=1 --scale floor,ceil,even,rceil \
    --baseline mxint4
pick 'R-MSE over that of floor with int_emax=0' rmse_ratio 1 %.4f
pick 'Elements that overflow, %' overflow_rate 100 %.2f

part 'Layer by layer'
layers() {
    show compare "$@" --element e2m1 --scale floor,ceil,even,rceil --layers --json layers.json --quiet
    mx compare "$@" --element e2m1 --scale floor,ceil,even,rceil --layers | sed -n '/^layer /,/^$/p'
    grep '^{"file":.*"series":' layers.json | awk "$member"'{
        nrmse = $0
        sub(/.*"nrmse":\[/, "", nrmse); sub(/\].*/, "", nrmse)
        n = split(nrmse, x, ",")
        printf "%-20s R-MSE over rms, %%:", member($0, "recipe")
        for (i = 1; i <= n; ++i) printf " %6.3f", 100 * x[i]
        print ""
    }'
}
layers small.safetensors --tensor 'model*down_proj.weight'
case $real in *stories260k*) layers stories260k.safetensors --tensor '*w2.weight' ;; esac

part 'Scale phase'
phase e2m1 mxfp4:scale=even mxfp4
phase e2m1 mxfp4:scale=even mxfp4:scale=rceil
phase e2m1 mxfp4 mxfp4:scale=rceil
phase e4m3 mxfp8:scale=rceil mxfp8:scale=even
phase e4m3 mxfp8:scale=rceil mxfp8

# ---- docs/reproduce/su.md ----

part 'A block of one value'
show cluster block099.bin --dtype F32 --shape 32
show analyze block099.bin --dtype F32 --shape 32 -r mxfp8 -r mxfp4 -r mxfp8:scale=rceil -r mxfp4:scale=rceil

part 'The thresholds: 31 times the value named, once 0.95'
everything=$inputs
inputs='0.90626 0.90625 0.84375 0.84374 0.81251 0.8125 0.62501 0.625'
for value in $inputs; do
    { repeat "$value" 31; echo 0.95; } | f32 >edge.bin
    mx cluster edge.bin --dtype F32 --shape 32 -r mxfp8 -r mxfp8_e5m2 -r mxfp6 -r mxfp6_e3m2 -r mxfp4 \
        --json "$value.json" --quiet
done
mean 'Share of the blocks that saturate' 'f("saturated_block_rate")' 1 %.0f

everything="$everything syn-n"
inputs='syn-n n-layernorm'
for file in $real; do
    case $file in stories* | minigrid* | magika*) inputs="$inputs n-$file" ;; esac
done

part 'Norms: which blocks saturate'
over cluster -r mxfp8 -r mxfp8_e5m2 -r mxfp6 -r mxfp6_e3m2 -r mxfp4 -r mxfp8:scale=even \
    -r mxfp4:scale=even -r mxfp8:scale=rceil -r mxfp4:scale=rceil
of_blocks='f("eligible_blocks")'
mean 'Blocks that saturate, %' 'f("saturated_block_rate")' 100 %.2f "$of_blocks"
mean 'Blocks in which every element overflows, %' 'f("certain_overflow_block_rate")' 100 %.2f "$of_blocks"
mean 'Blocks whose maximum overflows, %' 'f("clamp_zone_block_rate")' 100 %.2f "$of_blocks"
mean 'What saturated blocks are multiplied by' 'f("saturated_block_gain")' 1 %.4f \
    "$of_blocks"' * f("saturated_block_rate")'
mean 'Elements with the largest code, %' 'f("top_code_rate")' 100 %.2f 'f("elements")'

part 'Norms: what mends them'
for file in $real; do
    case $file in magika*) ;; *) continue ;; esac
    show cluster "$file" --tensor 'model/layer_normalization/Reshape:0' \
        --tensor 'model/layer_normalization_1/mul/*'
done
for preset in mxfp8 mxfp4; do
    over cluster -r $preset -r $preset:scale=rceil -r $preset:scale=floor-bump -r $preset:scale=even \
        -r $preset:block=1x16 -r $preset:block=1x8 -r $preset:offset=fp16
    mean 'R-MSE over rms, %, mean over tensors' 'f("nrmse")' 100 %.3f
    mean 'sum(x d) / sum(x^2), mean over tensors' 'f("gain")' 1 %.4f
    mean 'Blocks that saturate, %' 'f("saturated_block_rate")' 100 %.2f "$of_blocks"
done
norms=$inputs
inputs=$everything

part 'The last bin of weights, activations and gradients'
for element in e4m3 e5m2 e2m3 e3m2 e2m1; do
    over compare --element $element --scale floor,even,rceil
    pick 'Elements that overflow, %' overflow_rate 100 %.2f
    mean 'Elements with the largest code, %' 'f("top_code_rate")' 100 %.2f 'f("elements")'
done

part 'Gains that drift'
# Made by hand: 256 gains c + 0.02 z with z uniform in (-1, 1), c growing by 0.02 in a hundred steps,
# or falling by 0.01 through 1.
gains() {
    normal 512 | awk -v c="$1" 'NR <= 256 { z = $1 - int($1); printf "%.17g\n", c + 0.02 * z }' | f32
}
for step in 0 100 200 300 400 500 600; do
    gains "$(awk -v s=$step 'BEGIN { print 0.78 + 0.0002 * s }')" >"rise$step.bin"
    gains "$(awk -v s=$step 'BEGIN { print 1.04 - 0.0001 * s }')" >"fall$step.bin"
done
for way in rise fall; do
    show diff ${way}0.bin ${way}100.bin ${way}200.bin ${way}300.bin ${way}400.bin ${way}500.bin \
        ${way}600.bin --dtype F32 --shape 256 --role-pattern 'norm=*' -r mxfp8 --json $way.json |
        sed '/^1 of 1 tensor/,/^All tensors/d'
    for figure in clamp_zone_blocks clamp_zone_distance saturated_block_rate; do
        sed -n "/^\"series\":/,/^\]/s/.*\"$figure\":\[\([^]]*\)\].*/$figure \1/p" $way.json
    done
done
show diff small.safetensors small1.safetensors -r mxfp8 --role norm |
    sed '/^The 10 of/,/^All tensors/d'

part 'Hadamard rotations'
for size in 32 128; do
    over compare -r mxfp8:scale=even -r mxfp4:scale=even --transform none,hadamard,random-hadamard \
        --transform-size $size --baseline mxfp8:scale=even
    pick 'R-MSE over that of mxfp8:scale=even' rmse_ratio 1 %.4f
    pick 'SQNR, dB' sqnr_db 1 %.2f
    mean 'Crest factor, mean over tensors' 'f("crest_factor")' 1 %.2f
done
inputs=$norms
over cluster -r mxfp8 -r mxfp8:transform=hadamard -r mxfp8:transform=random-hadamard \
    -r mxfp4 -r mxfp4:transform=hadamard -r mxfp4:transform=random-hadamard
mean 'Blocks that saturate, %' 'f("saturated_block_rate")' 100 %.2f "$of_blocks"
mean 'R-MSE over rms, %, mean over tensors' 'f("nrmse")' 100 %.3f
mean 'Crest factor, mean over tensors' 'f("crest_factor")' 1 %.2f

# ---- docs/reproduce/stages.md ----

# The lines of a table of stages: stage, transform, source, then the figures named, of its first model.
stages() {
    show stages "$@" --json stages.json --quiet
    awk "$member"'
        /^[{]"stage":/ {
            key = member($0, "stage") "\t" member($0, "transform") "\t" member($0, "source")
            if (key in seen) next
            seen[key]
            if (!rows++) printf "%-6s %-16s %-11s %7s %7s %7s %7s %7s %7s %7s %7s %7s\n", "stage",
                "transform", "operands", "error", "indep.", "gain", "bias %", "cosine", "err. A",
                "err. B", "gain A", "gain B"
            split(key, k, "\t")
            printf "%-6s %-16s %-11s", k[1], k[2], k[3]
            n = split("total_nrmse expected_nrmse total_gain total_bias_share total_cosine nrmse_a nrmse_b gain_a gain_b", f, " ")
            for (i = 1; i <= n; ++i) {
                if (f[i] == "total_bias_share") printf " %7.2f", 100 * member($0, f[i])
                else printf " %7.4f", member($0, f[i])
            }
            print ""
        }' stages.json
    sed -n '/^"verdict":/,/^\]/p' stages.json
}

# Of a matrix of float32 numbers with `cols` columns on stdin: the share of its energy that the means of
# its columns hold, and the median over blocks of 32 rows of what the largest element holds.
common_and_largest() {
    od -An -v -w$((4 * $1)) -t f4 | awk '{
            if (NF == 0) next
            ++n
            for (i = 1; i <= NF; ++i) {
                x = $i + 0; s[i] += x; all += x * x; e[i] += x * x
                if (x * x > m[i]) m[i] = x * x
            }
            if (n % 32 == 0) for (i = 1; i <= NF; ++i) {
                printf "%.6f\n", m[i] / e[i]
                m[i] = e[i] = 0
            }
            cols = NF
        } END {
            for (i = 1; i <= cols; ++i) means += s[i] * s[i] / n
            printf "means %.4f\n", means / all
        }' >shares
    grep means shares
    grep -v means shares | sort -n | awk '{ x[NR] = $1 } END { print "largest", x[int((NR + 1) / 2)] }'
}

part 'Stages of a synthetic layer'
mx synth --preset linear --dtype f32 -o linear.safetensors --quiet
x=linear.safetensors:activations.linear.input
w=linear.safetensors:model.linear.weight
dy=linear.safetensors:gradients.linear.output
printf '\ndY: energy in the channels'"'"' means, and of blocks in their largest element\n'
tail -c $((512 * 688 * 4)) linear.safetensors | common_and_largest 688
for recipe in mxfp4 mxfp4:scale=even mxfp8 nvfp4; do
    stages --x $x --w $w --dy $dy -r $recipe
done
stages --x $x --w $w --dy $dy -r mxfp4:scale=even --recipe-dy mxfp4:scale=rceil,round=stochastic
stages --x $x --w $w --dy $dy -r mxfp4:scale=even --transform-size 128 --once

case $real in *stories260k*)
    part 'Stages of a real layer'
    # What enters the first attention layer for each of the 512 tokens of the vocabulary: the
    # embedding over its RMS, times the gains.
    n=$(wc -c <header)
    tail -c +$((n + 9)) stories260k.safetensors | head -c $((513 * 256)) |
        od -An -v -w256 -t f4 | awk '
            NR <= 512 { for (i = 1; i <= 64; ++i) e[NR, i] = $i }
            NR == 513 {
                for (t = 1; t <= 512; ++t) {
                    s = 0
                    for (i = 1; i <= 64; ++i) s += e[t, i] ^ 2
                    s = sqrt(s / 64 + 1e-5)
                    for (i = 1; i <= 64; ++i) printf "%.17g\n", e[t, i] / s * $i
                }
            }' | f32 >inputs.bin
    printf '\nX: energy in the channels'"'"' means, and of blocks in their largest element\n'
    common_and_largest 64 <inputs.bin
    for layer in wq wk wv; do
        w=stories260k.safetensors:layers.0.attention.$layer.weight
        given="--shape-a 512x64 --dtype F32 --transpose-b -r none -m exact"
        # The gradient of |Y - Y(W)|^2 / 2 where Y was made with quantized weights.
        show quantize stories260k.safetensors --tensor layers.0.attention.$layer.weight -r mxfp4 \
            -o quantized.npy --quiet
        # shellcheck disable=SC2086 # a list of words
        show gemm inputs.bin $w $given -o outputs.npy --quiet
        # shellcheck disable=SC2086
        show gemm inputs.bin quantized.npy $given --c outputs.npy --beta -1 -o gradient.npy --quiet
        rows=$([ $layer = wq ] && echo 64 || echo 32)
        printf '\nIts energy in the channels'"'"' means, and of blocks in their largest element\n'
        tail -c $((512 * rows * 4)) gradient.npy | common_and_largest "$rows"
        for recipe in mxfp4 mxfp4:scale=even; do
            stages --x inputs.bin --shape-x 512x64 --dtype F32 --w $w --dy gradient.npy -r $recipe
        done
    done
    ;;
esac
