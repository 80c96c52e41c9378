#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Colours, width, pager and settings: what the environment and the file of settings decide, and that
# no output but the table on a terminal shows it. environment_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
here=$(realpath "$2")/tests/cli
. "$here/fixtures.sh"
fail() { echo "$*" >&2; exit 1; }
unset NO_COLOR CLICOLOR_FORCE COLUMNS PAGER LESS MX_THREADS MX_BACKEND MX_COLOR MX_PAGER OMP_NUM_THREADS
export MX_CONFIG= TERM=xterm
escape=$(printf '\033')
colored() { grep -q "$escape\[" "$1"; }

# Colours: not in pipes and files unless requested, and then nothing else changes.
"$mx" explain formats >plain
colored plain && fail "colours in a pipe"
"$mx" explain formats --color always >always
colored always || fail "--color always"
sed "s/$escape\[[0-9]*m//g" always | cmp -s - plain || fail "colours change the text"
CLICOLOR_FORCE=1 "$mx" explain formats | cmp -s - always || fail "CLICOLOR_FORCE"
CLICOLOR_FORCE=1 NO_COLOR=1 "$mx" explain formats | cmp -s - plain || fail "NO_COLOR goes first"
NO_COLOR=1 "$mx" explain formats --color always | cmp -s - always || fail "the option goes first"
MX_COLOR=always "$mx" explain formats | cmp -s - always || fail "MX_COLOR"
MX_COLOR=always "$mx" explain formats --color never | cmp -s - plain || fail "--color never"
"$mx" synth -o tiny.safetensors -q
"$mx" analyze tiny.safetensors --color always --json a.json --csv a.csv --markdown a.md --html a.html >table
grep -q "$escape\[32msafe$escape\[0m" table || fail "a verdict without a colour"
for file in a.json a.csv a.md a.html; do colored $file && fail "colours in $file"; done

# Width: COLUMNS before the terminal's; within 60 and 200.
widest() { awk '{ if (length($0) > most) most = length($0) } END { print most + 0 }'; }
[ "$(COLUMNS=80 "$mx" help analyze | sed '/^Examples/,$d' | widest)" -le 80 ] || fail "help is wider than COLUMNS"
[ "$(COLUMNS=80 "$mx" help | widest)" -le 80 ] || fail "the list of commands is wider than COLUMNS"
[ "$(COLUMNS=80 "$mx" analyze tiny.safetensors -r mxfp8:scale=rceil -r mxfp4:scale=even | sed '/^To repeat/,$d; /^\$ /d' | widest)" -le 80 ] || fail "tables are wider than COLUMNS"
# Long names are cut rather than lines broken by the terminal, also with every default recipe.
[ "$(COLUMNS=80 "$mx" analyze small.safetensors | sed '/^To repeat/,/^$/d; /^\$ /d' | widest)" -le 80 ] || fail "a table of all recipes is wider than COLUMNS"
for command in compare cluster; do
    COLUMNS=80 "$mx" $command small.safetensors -r mxfp8_e5m2:scale=rceil,axis=flat -r mxfp4:scale=even >table
    [ "$(grep -v '^\$ ' table | widest)" -le 80 ] || fail "the tables of mx $command are wider than COLUMNS"
done
[ "$(COLUMNS=zero "$mx" explain formats | widest)" -eq "$(widest <plain)" ] || fail "COLUMNS=zero"

# Settings: the option, the variable, the file, in this order.
threads() { "$mx" analyze small.safetensors -q --verbose "$@" 2>&1 | sed -n 's/.*, \([0-9]*\) thread.*/\1/p'; }
mkdir -p config/mx
printf '# mine\nthreads = 3\ncolor = "always"\n' >config/mx/config.toml
unset MX_CONFIG
export XDG_CONFIG_HOME="$PWD/config"
[ "$(threads)" = 3 ] || fail "the file does not count"
[ "$(MX_THREADS=2 threads)" = 2 ] || fail "the variable does not go before the file"
[ "$(MX_THREADS=2 threads --threads 1)" = 1 ] || fail "the option does not go first"
[ "$(MX_CONFIG='' MX_THREADS='' OMP_NUM_THREADS=2 threads)" = 2 ] || fail "an empty MX_CONFIG does not mean none"
"$mx" explain formats | cmp -s - always || fail "color in the file"
"$mx" analyze small.safetensors -q --json with.json
MX_CONFIG='' "$mx" analyze small.safetensors -q --json without.json
cmp -s with.json without.json || fail "a setting changed a figure"

# Errors name the wrong setting and its place; no setting is ignored.
wrong() { # CODE WORD CONTENT
    printf "$3" >bad.toml
    code=0
    MX_CONFIG=bad.toml "$mx" analyze small.safetensors -q 2>message || code=$?
    [ "$code" -eq "$1" ] && grep -q "$2" message && [ "$(wc -l <message)" -eq 1 ] ||
        fail "exit code $code and '$(cat message)' for: $3"
}
wrong 2 "bad.toml: unknown setting 'recipe'" 'recipe = "mxfp4"\n'
wrong 2 "bad.toml: unknown setting 'run.threads'" '[run]\nthreads = 2\n'
wrong 2 'bad.toml: threads: .*give a number from' 'threads = 0\n'
wrong 2 'bad.toml: backend: unknown backend' 'backend = warp\n'
wrong 3 'bad.toml' 'threads = [1, 2]\n'
wrong 3 "bad.toml: 'threads' has 2 values; give one" 'threads = 1\nthreads = 2\n'
code=0
MX_CONFIG=nowhere.toml "$mx" explain formats 2>message || code=$?
[ "$code" -eq 3 ] && grep -q 'nowhere.toml: MX_CONFIG' message || fail "a file that is not there: $code $(cat message)"
code=0
MX_THREADS=0 "$mx" analyze small.safetensors 2>message || code=$?
[ "$code" -eq 2 ] && grep -q 'MX_THREADS: .*give a number from' message || fail "MX_THREADS=0: $code $(cat message)"
export MX_CONFIG=

# On a terminal: colours by default, long help through the pager, binary output refused.
command -v script >/dev/null || { echo "script is not here: terminals were not tried"; exit 0; }
on_terminal() { script -qec "stty cols 90 rows 20; $*" /dev/null </dev/null >seen 2>&1; }
on_terminal "'$mx' explain formats" && colored seen || fail "no colours on a terminal"
TERM=dumb on_terminal "'$mx' explain formats" && ! colored seen || fail "colours on a dumb terminal"
NO_COLOR=1 on_terminal "'$mx' explain formats" && ! colored seen || fail "NO_COLOR on a terminal"
PAGER='sed s/^/paged:/' on_terminal "'$mx' help analyze" && grep -q '^paged:Usage' seen || fail "PAGER"
PAGER=false MX_PAGER='sed s/^/mine:/' on_terminal "'$mx' analyze --help" && grep -q '^mine:Usage' seen || fail "MX_PAGER"
PAGER='sed s/^/paged:/' on_terminal "'$mx' help --no-pager analyze" && ! grep -q paged seen || fail "--no-pager"
PAGER='sed s/^/paged:/' on_terminal "'$mx' help help" && ! grep -q paged seen || fail "short help was paged"
PAGER=no-such-pager on_terminal "'$mx' help analyze" && grep -q '^Usage' seen || fail "help is lost without a pager"
code=0
on_terminal "'$mx' synth -o -" || code=$?
[ "$code" -eq 2 ] && grep -q 'is a terminal' seen || fail "binary on a terminal: $code $(head -c 200 seen)"
