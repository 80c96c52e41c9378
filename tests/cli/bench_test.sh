#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The output of `mx bench`, but not the rates. bench_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir tmp
TMPDIR=$scratch/tmp
export TMPDIR
fail() { echo "$*" >&2; exit 1; }

# One record per recipe, backend, thread count, with and without histograms; all numbers positive.
"$mx" bench --elements 10000 --seconds 0.01 --recipe mxfp4 --recipe mxfp8:round=stochastic \
    --recipe mxfp4:scale=floor --dtype f16 --threads 2,1 --threads 1 --backend all --together \
    --histograms --json bench.json --csv bench.csv >table 2>stderr
[ ! -s stderr ] || fail "on stderr: $(cat stderr)"
awk 'length > 100 { exit 1 }' table || fail "wider than 100 columns: $(cat table)"
backends=$("$mx" version | grep '^backend' | grep -vc 'not here')
positive='\(0\.[0-9]*[1-9][0-9]*\|[1-9][0-9.]*\)\(e[-+][0-9]*\)\{0,1\}'
rest='"backend":"[a-z0-9]*","threads":[12],"dtype":"F16","histograms":\(true\|false\),'
rest=$rest'"elements_per_second":'$positive',"fraction_of_read_bandwidth":'$positive
count() { grep -c "$1" bench.json || true; }
want() { [ "$1" -eq "$2" ] || fail "$3: $1 instead of $2: $(cat bench.json)"; }
want "$(count '^{"recipe":"\(mxfp4\|mxfp8:round=stochastic\)",'"$rest"'},\{0,1\}$')" \
    $((2 * 2 * 2 * backends)) results
want "$(count '^{"recipes":\["mxfp4","mxfp8:round=stochastic"\],'"$rest"',"fraction_of_separate_passes":'"$positive"'},\{0,1\}$')" \
    $((2 * 2 * backends)) 'joint results'
want "$(count '"schema":"mx.bench/1"')" 1 schema
want "$(count '"read_bandwidth_bytes_per_second":'"$positive"',')" 3 'read bandwidths'
want "$(count '"copy_bandwidth_bytes_per_second":'"$positive"'[,}]')" 3 'copy bandwidths'
want "$(wc -l <bench.csv)" $((2 * 2 * 2 * backends + 1)) 'lines of CSV'

# Without --backend: the backend that `mx version` names.
chosen=$("$mx" version | sed -n 's/^backend \([a-z0-9]*\) .*(chosen).*/\1/p')
"$mx" bench --elements 1 --seconds 0 --threads 1 --json - >bench.json
want "$(count "\"backend\":\"$chosen\",\"threads\":1,\"dtype\":\"BF16\"")" 13 'default recipes'

# From files: one more record per recipe, backend and thread count.
"$mx" synth -o tiny.safetensors --quiet
"$mx" bench tiny.safetensors --elements 1 --seconds 0 --threads 1,2 --backend all --recipe mxfp4 \
    --json bench.json >table 2>stderr
[ ! -s stderr ] || fail "on stderr: $(cat stderr)"
awk 'length > 100 { exit 1 }' table || fail "wider than 100 columns: $(cat table)"
want "$(count '^{"values":"files","writes":"sums","recipe":"mxfp4","backend":"[a-z0-9]*","threads":[12],"histograms":false,"elements_per_second":'"$positive"',"bytes_per_second":'"$positive"',"roof":"\(memory_read\|pinned_copy\)","fraction_of_roof":'"$positive"'},\{0,1\}$')" \
    $((2 * backends)) 'rates from files'

# --suite: recipes and commands, each with the backend that did the work.
"$mx" bench --suite --elements 20000 --seconds 0 --threads 2 --backend scalar --json bench.json \
    >table 2>stderr
[ ! -s stderr ] || fail "on stderr: $(cat stderr)"
awk 'length > 100 { exit 1 }' table || fail "wider than 100 columns: $(cat table)"
rates='"bytes_read_per_element":'$positive',"bytes_written_per_element":[0-9.e-]*,'
rates=$rates'"elements_per_second":'$positive',"times_mxfp4":'$positive
rates=$rates',"fraction_of_read_bandwidth":'$positive',"fraction_of_roof":'$positive
served='"backend":"scalar","threads":2,"dtype":"BF16",'
want "$(count '"group":"format","case":"mxfp4",'"$served$rates"'},\{0,1\}$')" 1 'the first case'
for case_name in 'quantize --recipe nvfp4 --packed' 'quantize --recipe e4m3 --packed' 'verify (of mxfp4)'; do
    want "$(count '"group":"command","case":"'"$case_name"'",'"$served$rates"'},\{0,1\}$')" 1 "$case_name"
done
[ -z "$(ls -A tmp)" ] || fail "left behind: $(ls -A tmp)"

# The requested ones, after the first.
"$mx" bench --suite --case 'quantize --recipe [ei]*' --elements 20000 --seconds 0 --json bench.json --quiet
want "$(count '"group":"command","case":"quantize --recipe [ei]')" 6 'casts'
want "$(count '"group":')" 7 'chosen cases'
for wrong in '--case nothing' '--threads 1,2'; do
    "$mx" bench --suite $wrong --elements 20000 --seconds 0 >table 2>stderr && fail "took $wrong"
    [ "$(wc -l <stderr)" -eq 1 ] || fail "not one line: $(cat stderr)"
done

"$mx" bench --roads 2>stderr && fail 'took the old name'
[ "$(cat stderr)" = "mx: bench: '--roads' is now '--suite'; see 'mx help bench'" ] || fail "$(cat stderr)"

# Products: one record per model, backend and thread count.
"$mx" bench --gemm --mnk 33,40,130 --seconds 0 --threads 1,2 --backend all --json bench.json \
    --accumulate sm100.mxf4nvf4 --accumulate sm90.wgmma.fp8:promote=128 --accumulate fp32.pairwise \
    --csv bench.csv >table 2>stderr
[ ! -s stderr ] || fail "on stderr: $(cat stderr)"
awk 'length > 100 { exit 1 }' table || fail "wider than 100 columns: $(cat table)"
times='\(,"times_two_threads_of_the_processor":'$positive'\)\{0,1\}'  # of a card
product() {
    want "$(count '^{"accumulator":"'"$1"'","operands":"'"$2"'","scales":'"$3"',"backend":"[a-z0-9]*","kernels":\(true\|false\),"threads":[12],"multiply_adds_per_second":'"$positive$times"'},\{0,1\}$')" \
        $((2 * backends)) "products of $1"
}
product sm100.mxf4nvf4 e2m1 '"ue4m3 per 16"'
product sm90.wgmma.fp8:promote=128 e4m3 null
product fp32.pairwise f32 null
want "$(count '"accumulator":"fp32.pairwise".*"kernels":true')" 0 'kernels for trees'
want "$(count '"accumulator":"sm100.mxf4nvf4".*"kernels":true')" $((2 * (backends - 1))) 'kernels'
want "$(count '"schema":"mx.bench/1"')" 1 schema
want "$(wc -l <bench.csv)" $((3 * 2 * backends + 1)) 'lines of CSV'

# expect CODE STDERR-WORD ARGUMENT...
expect() {
    want=$1 word=$2
    shift 2
    code=0
    "$mx" bench --seconds 0 "$@" >stdout 2>stderr || code=$?
    [ "$code" -eq "$want" ] || fail "exit code $code instead of $want: $*: $(cat stderr)"
    [ "$(wc -l <stderr)" -eq 1 ] || fail "not one line: $(cat stderr)"
    grep -q -e "$word" stderr || fail "no '$word' in: $(cat stderr)"
    [ ! -s stdout ] || fail "on stdout: $(cat stdout)"
}
expect 2 'BF16, F16 or F32' --dtype I8
expect 2 '--dtype' --dtype float
expect 2 "did you mean" --backend scaler
expect 2 "mxpf4" --recipe mxpf4
expect 2 "sm100.mxf4" --gemm --accumulate sm100.mxf5
expect 2 "gemm" --accumulate sm100.mxf4
expect 2 "give a number from" --threads 1,0
expect 3 "No such file" --json nowhere/bench.json
expect 2 'suits no tensor' tiny.safetensors --recipe mxfp4:axis=5
expect 2 'FILE excludes --gemm' tiny.safetensors --gemm
expect 3 'No such file' nowhere.safetensors
export CUDA_VISIBLE_DEVICES=-1
expect 4 'cuda cannot run here' --backend cuda
expect 4 'cuda cannot run here' --backend cuda --gemm
expect 4 'cannot run here' --backend "$("$mx" version | sed -n 's/^backend \([a-z0-9]*\) .*not here.*/\1/p' | head -1)"

# On a terminal the bar shows the time left and disappears before the table.
if command -v script >/dev/null 2>&1; then
    script -qec "stty cols 90; '$mx' bench --elements 1000 --seconds 0.5 --threads 1 --recipe mxfp4" \
        /dev/null </dev/null >screen
    tr '\r' '\n' <screen >lines
    grep -q '^\[[#.]*\] .*% .* left' lines || fail "no bar: $(cat lines)"
    grep -v '^\[' lines | grep -q '^.\[KMemory' || fail "the bar stays: $(cat lines)"
    script -qec "'$mx' bench --elements 1000 --seconds 0.5 --threads 1 --recipe mxfp4 --quiet" \
        /dev/null </dev/null >screen
    [ ! -s screen ] || fail "not quiet: $(cat screen)"
fi
