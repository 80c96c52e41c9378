#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pictures and figures of docs/guide/metrics-drawn.md are current. pictures_test.sh MX SOURCE
set -eu
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
figures=$(python3 "$2/scripts/draw-metrics.py" "$1" "$2/docs/guide/pictures" --check)
stated=$(sed -n 's/^| `\([a-z_]*\)` | \([0-9.]*\) |.*/\1=\2/p' "$2/docs/guide/metrics-drawn.md")
[ "$(echo "$stated" | wc -l)" -ge 8 ] || { echo "the page states too little: $stated" >&2; exit 1; }
for figure in $stated; do
    case " $(echo "$figures" | tr '\n' ' ') " in
    *" $figure "*) ;;
    *) echo "the page says $figure; mx says $figures" >&2 && exit 1 ;;
    esac
done
