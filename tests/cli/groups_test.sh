#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records of groups: their figures for a mixture of experts, in one run and in parts, and their memory.
# groups_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
source=$(realpath "$2")
if ! command -v python3 >/dev/null; then
    echo 'skipped: no python3'
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fail() {
    echo "$*" >&2
    exit 1
}
python3 "$source/tests/cli/moe.py" moe.safetensors 3 16 64 32

# The worst expert of each layer is the one with outliers: 3, 10 and 17 mod 16.
"$mx" analyze moe.safetensors -r mxfp4 -r mxfp8 --group 'experts.*' --json groups.json --quiet
"$mx" analyze moe.safetensors -r mxfp4 -r mxfp8 --json tensors.json --quiet
python3 - <<'END'
import json
records = json.load(open("groups.json"))["results"]
single = json.load(open("tensors.json"))["results"]
assert len(records) == 2 * 3 * (6 + 3) and len(single) == 2 * 3 * (6 + 48), len(records)
for r in records:
    prefix, star, suffix = r["tensor"].partition("*")
    members = [s for s in single if s["recipe"] == r["recipe"] and (
        s["tensor"].startswith(prefix) and s["tensor"].endswith(suffix) if star
        else s["tensor"] == r["tensor"])]
    assert r["members"] == len(members) == (16 if star else 1), r["tensor"]
    assert r["elements"] == sum(s["elements"] for s in members)
    worst = max(members, key=lambda s: s["nrmse"])
    assert r["worst_member"] == worst["tensor"], (r["tensor"], r["worst_member"])
    assert r["worst_member_sqnr_db"] == worst["sqnr_db"]
    squares = sum(s["elements"] * s["rmse"] ** 2 for s in members)
    assert abs(r["rmse"] ** 2 * r["elements"] - squares) <= 1e-12 * squares
down = [r["worst_member"] for r in records
        if "down_proj" in r["tensor"] and r["recipe"] == "mxfp4"]
assert [name.split(".")[5] for name in down] == ["3", "10", "1"], down
END

# same COUNTS COMMAND...: one run, and parts by other threads, merged in another order.
same() {
    counts=$1
    shift
    "$mx" "$@" --json one.json --csv one.csv --markdown one.md >one.txt
    for n in $counts; do
        rm -f part-*.json
        for i in $(seq $n); do
            "$mx" "$@" --shard "$i/$n" --json "part-$i.json" --threads $((i % 3 + 1)) --quiet
        done
        "$mx" merge $(ls -r part-*.json) --json all.json --csv all.csv --markdown all.md >all.txt
        for ending in json csv md txt; do
            cmp one.$ending all.$ending || fail "mx $* in $n parts: $ending differs"
        done
    done
}
measured='-r mxfp4 -r nvfp4 -r mxfp8:axis=0'
same '1 2 3 7 64' analyze moe.safetensors $measured --decompose --histograms --group 'experts.*'
same 5 analyze moe.safetensors $measured --decompose --histograms --group layer,role
same 3 compare moe.safetensors --element e2m1 --scale floor,even --group 'experts.*'
# Records of several layers are of none, whatever numbers are left in their names.
"$mx" compare moe.safetensors --element e2m1 --scale floor,even --group 'layers.*' --layers \
    --json layers.json --html layers.html >layers.txt
python3 -c 'import json; assert json.load(open("layers.json"))["series"] == []'

cat >group_names.py <<'END'
import sys
def name(r):
    if sys.argv[1] == "layer,role":
        return "layer.%s/%s" % (r["layer"], r["role"])
    words = r["tensor"].split(".")
    if "experts" in words:
        words[words.index("experts") + 1] = "*"
    return ".".join(words)
END

# Pairs of consecutive dumps: figures of the members' sums, and the member that differs most.
for recipe in mxfp8 mxfp4; do
    "$mx" quantize moe.safetensors --all-tensors -r $recipe -o packed.safetensors --quiet
    "$mx" dequantize packed.safetensors -o $recipe.safetensors --quiet
done
set -- moe.safetensors mxfp8.safetensors mxfp4.safetensors --as-given $measured
"$mx" diff "$@" --json tensors.json --quiet
for by in 'experts.*' layer,role; do
    same '1 3 7' diff "$@" --group "$by"
    python3 - "$by" <<'END'
import json
import sys
one, single = [json.load(open(f)) for f in ("one.json", "tensors.json")]
assert one["summary"] == single["summary"] and one["findings"] == single["findings"]
from group_names import name
groups = {}
for r in single["results"]:
    groups.setdefault((name(r), r["recipe"], r["label_a"]), []).append(r)
assert len(groups) == len(one["results"]) < len(single["results"]) / 3, len(one["results"])
for r in one["results"]:
    members = groups[r["tensor"], r["recipe"], r["label_a"]]
    assert r["members"] == len(members), r["tensor"]
    for count in ("elements", "changed_values", "blocks", "moved_scales", "moved_codes"):
        assert r[count] == sum(m[count] for m in members), count
    assert r["max_abs_difference"] == max(m["max_abs_difference"] for m in members)
    squares = sum(m["elements"] * m["rmse"] ** 2 for m in members)
    assert abs(r["rmse"] ** 2 * r["elements"] - squares) <= 1e-12 * squares
    worst = max(members, key=lambda m: m["nrmse"])
    assert r["worst_member"] == worst["tensor"], (r["tensor"], r["worst_member"])
    assert r["worst_member_nrmse"] == worst["nrmse"]
    assert r["worst_member_codes_moved"] == worst["codes_moved"]
series = {(r["tensor"], r["recipe"]): r["nrmse"] for r in one["series"]}
for r in one["results"]:
    assert r["nrmse"] in series[r["tensor"], r["recipe"]]
END
    grep -Eq 'experts.[35](.(down|up)_proj.weight)?, 0' one.txt || fail "diff --group $by: the table names no member"
done
code=0
"$mx" diff "$@" --group 'experts.*' --fail-above worst_member_nrmse=0.01 --quiet 2>said || code=$?
[ $code = 1 ] && grep -q 'experts.*worst_member_nrmse' said || fail "--fail-above: $code $(cat said)"
code=0
"$mx" diff "$@" --group 'nowhere.*' 2>said >out || code=$?
[ $code = 2 ] && [ "$(wc -l <said)" = 1 ] && grep -q 'matches no tensor' said || fail "diff: $code"

# Blocks: those of all members, while findings and counts of tensors stay those of tensors.
set -- moe.safetensors -r mxfp8:scale=floor -r mxfp4 -r mxint4:offset=fp16
"$mx" cluster "$@" --json tensors.json --quiet
for by in 'experts.*' layer,role; do
    same '1 3 7' cluster "$@" --group "$by"
    python3 - "$by" <<'END'
import json
import sys
one, single = [json.load(open(f)) for f in ("one.json", "tensors.json")]
for name in "findings", "health", "norms_around_zero", "skipped":
    assert one[name] == single[name], name
assert one["findings"], "nothing is in danger"
in_danger = {(f["tensor"], f["recipe"]) for f in one["findings"]}
from group_names import name
groups = {}
for r in single["results"]:
    groups.setdefault((name(r), r["recipe"]), []).append(r)
assert len(groups) == len(one["results"]) < len(single["results"]) / 3
def mean(members, figure, weight):
    total = sum(weight(m) for m in members)
    return sum(m[figure] * weight(m) for m in members if weight(m)) / total if total else None
def close(a, b):
    return a == b or abs(a - b) <= 1e-12 * abs(b)
for r in one["results"]:
    members = groups[r["tensor"], r["recipe"]]
    assert r["members"] == len(members)
    assert r["members_in_danger"] == sum((m["tensor"], m["recipe"]) in in_danger for m in members)
    worst = max(members, key=lambda m: m["saturated_block_rate"])
    assert r["most_saturated_member"] == worst["tensor"], r["tensor"]
    assert r["most_saturated_block_rate"] == worst["saturated_block_rate"]
    # Every block of these matrices has a maximum and is eligible.
    blocks = lambda m: m["blocks"]
    assert close(r["clamp_zone_block_rate"], mean(members, "clamp_zone_block_rate", blocks))
    if r["certain_overflow_block_rate"] is not None:
        for rate in "certain_overflow_block_rate", "certain_saturation_block_rate":
            assert close(r[rate], mean(members, rate, blocks)), rate
    saturated = lambda m: round(m["saturated_block_rate"] * m["blocks"])
    gain = mean([m for m in members if saturated(m)], "saturated_block_gain", saturated)
    assert (gain is None) == (r["saturated_block_gain"] is None)
    assert gain is None or close(r["saturated_block_gain"], gain), (gain, r["saturated_block_gain"])
    for quantile in "spread_p01", "spread_p50", "spread_p99":
        found = [m[quantile] for m in members]
        assert min(found) <= r[quantile] <= max(found), quantile
END
    grep -q '^Groups with such tensors' one.txt || fail "cluster --group $by: no table of groups"
done
limit=$(python3 - <<'END'
import json
results = json.load(open("one.json"))["results"]
of_tensors = max(r["most_saturated_block_rate"] for r in results)
of_groups = max(r["saturated_block_rate"] for r in results)
assert of_tensors > of_groups, (of_tensors, of_groups)
print((of_tensors + of_groups) / 2)
END
)
code=0
"$mx" cluster "$@" --group layer,role --fail-above "$limit" --quiet 2>said || code=$?
[ $code = 1 ] && grep -q 'model.layers.*saturate' said || fail "cluster --fail-above: $code $(cat said)"

# A plan gives the tensors of a group the same recipe, and no other such plan is better.
"$mx" analyze moe.safetensors -r mxfp4 -r mxfp8 -r mxfp6 --json tensors.json --quiet
plan() { "$mx" plan tensors.json -t '*attn*' -t '*[pe]_proj*' --recipe 'mxfp*' "$@" --quiet; }
plan --bits 6.5 --separate -o free.json
plan --bits 8 --separate -o apart.json
plan --bits 8 -o fused.json
plan --bits 6.5 --separate --group 'experts.*' -o grouped.json
plan --bits 8.5 --group role -o roles.json
python3 - <<'END'
import json
free, apart, fused, grouped, roles = [
    json.load(open(n + ".json")) for n in ("free", "apart", "fused", "grouped", "roles")]
assert all(r["group"] is None for r in free["results"])
for alone, plan in (apart, fused), (free, grouped):
    chosen = {}
    for r in plan["results"]:
        if r["group"] is not None:
            chosen.setdefault(r["group"], set()).add(r["recipe"])
    assert all(len(c) == 1 for c in chosen.values()) and len(set.union(*chosen.values())) > 1, chosen
    assert alone["totals"]["squared_error"] < plan["totals"]["squared_error"]
assert len({r["group"] for r in fused["results"] if ".experts." in r["tensor"]}) == len(
    {r["tensor"].split(".")[2] for r in fused["results"] if ".experts." in r["tensor"]})
assert grouped["totals"]["bits_per_element"] <= 6.5 and grouped["optimal"]
# By hand: one recipe for all.
results = {(r["tensor"], r["recipe"]): r for r in json.load(open("tensors.json"))["results"]}
planned = [r["tensor"] for r in roles["results"] if r["group"] is not None]
elements = sum(results[t, "mxfp4"]["elements"] for t in planned)
def totals(recipe):
    of = [results[t, recipe] for t in planned]
    return (sum(r["bits_per_element"] * r["elements"] for r in of) / elements,
            sum(r["rmse"] ** 2 * r["elements"] for r in of))
within = [t for t in map(totals, {recipe for _, recipe in results}) if t[0] <= 8.5]
assert abs(min(t[1] for t in within) / roles["totals"]["squared_error"] - 1) < 1e-9
END
# The outliers of one expert rule MXFP4 out for its group.
"$mx" plan tensors.json --recipe mxfp4 --bits 9 --separate --group 'experts.*' -o grouped.json -q
python3 - <<'END'
import json
up = [r for r in json.load(open("grouped.json"))["results"] if "up_proj" in r["tensor"]]
assert {r["recipe"] for r in up} == {"stored"} and len({r["reason"] for r in up}) > 1
END
code=0
"$mx" plan tensors.json --group 'experts.*' 2>said >out || code=$?
[ $code = 2 ] && [ "$(wc -l <said)" = 1 ] && grep -q 'for a budget' said || fail "plan: $(cat said)"
code=0
"$mx" plan tensors.json -r mxfp6 --bits 9 --group 'nowhere.*' 2>said >out || code=$?
[ $code = 2 ] && grep -q 'matches no tensor' said || fail "plan: $(cat said)"

# Results with groups can be read like any others.
"$mx" report groups.json -o page.html --quiet
grep -q 'The worst tensors of groups' page.html
"$mx" gate groups.json --rule 'worst_member_sqnr_db>10' --quiet
"$mx" report part-2.json -o part.html --quiet
code=0
"$mx" plan groups.json --bits 5 >out 2>said || code=$?
[ $code = 3 ] && grep -q 'give --group to mx plan' said || fail "plan: $code"
# refused TEXT BY
refused() {
    code=0
    "$mx" analyze moe.safetensors --group "$2" 2>said >out || code=$?
    [ $code = 2 ] && [ "$(wc -l <said)" = 1 ] && grep -q -- "$1" said || fail "--group $2: $(cat said)"
}
refused 'layer,role or' experts
refused 'matches no tensor' 'nowhere.*'

# Memory and results depend on the number of groups, not on that of tensors: 8,290.
python3 "$source/tests/cli/moe.py" many.safetensors 2 1380 2 32
python3 "$source/tests/cli/moe.py" few.safetensors 2 138 2 32
python3 - "$mx" <<'END'
import os
import subprocess
import sys
recipes = [word for r in ("mxfp4", "mxfp8", "mxfp6", "mxint8", "mxfp4:scale=even", "mxfp8:scale=even",
                          "mxfp6:scale=even", "mxfp4:scale=rceil", "mxfp8:scale=rceil")
           for word in ("-r", r)]
def peak(name, command, file, *more):
    job = subprocess.Popen([sys.argv[1], command, file, *more, "--json", name, "--threads", "2",
                            "--quiet"])
    _, status, usage = os.wait4(job.pid, 0)
    assert status == 0, status
    return 1024 * usage.ru_maxrss
few = peak("few.json", "analyze", "few.safetensors", *recipes)
single = peak("single.json", "analyze", "many.safetensors", *recipes)
grouped = peak("grouped.json", "analyze", "many.safetensors", *recipes, "--group", "experts.*")
assert os.path.getsize("grouped.json") < 200000 < 50000000 < os.path.getsize("single.json")
assert grouped - few < 0.5 * (single - few), (few, grouped, single)
# Without groups, a few hundred bytes for each record, including the tensor's name.
cells = ("--element", "e2m1,e4m3", "--scale", "floor,ceil,even,rceil", "--no-regret")
few_cells = peak("few.json", "compare", "few.safetensors", *cells)
many_cells = peak("many.json", "compare", "many.safetensors", *cells)
for least, most, count in (few, single, 9), (few_cells, many_cells, 8):
    each = (most - least) / (count * 2 * 3 * (1380 - 138))
    assert each < 600, (each, least, most)
END
