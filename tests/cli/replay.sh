#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Replays a transcript: every line "$ COMMAND" is run by sh, with mx on the PATH, in a new folder
# with the files of fixtures.sh, and must print what the transcript contains. Standard output is
# marked "|", standard error "!", an exit code other than 0 "?"; other lines are prose.
# In Markdown, commands with their output and errors are the fenced blocks marked "console". Those
# marked "console+FILE" are about a checkpoint that datasets/fetch.sh fetches: they are replayed where
# the folder MX_CHECKPOINTS has it, and stay as they are elsewhere, which a line on stderr says.
#
#   replay.sh MX TRANSCRIPT            compares, exit 1 and a diff when something differs
#   replay.sh MX TRANSCRIPT --update   rewrites the transcript; read the diff before committing it
set -u
mx=$(realpath "$1")
transcript=$(realpath "$2")
here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir "$scratch/bin" "$scratch/files"
ln -s "$mx" "$scratch/bin/mx"
PATH=$scratch/bin:$PATH
LC_ALL=C
MX_CONFIG=
export PATH LC_ALL MX_CONFIG
unset COLUMNS NO_COLOR CLICOLOR_FORCE MX_COLOR
cd "$scratch/files" || exit 2
. "$here/fixtures.sh"

replay() {
    while IFS= read -r line; do
        case $line in
        '$ '*)
            printf '%s\n' "$line"
            sh -c "${line#??}" </dev/null >../stdout 2>../stderr
            code=$?
            sed 's/^/| /; s/ *$//' ../stdout
            sed 's/^/! /; s/ *$//' ../stderr
            [ "$code" -eq 0 ] || printf '? %s\n' "$code"
            ;;
        '|'* | '!'* | '?'*) ;;
        *) printf '%s\n' "$line" ;;
        esac
    done
}

# Whether the checkpoint is there; then it is in the folder of the commands, too.
has_checkpoint() {
    [ -e "$1" ] || if [ -e "${MX_CHECKPOINTS:-}/$1" ]; then
        ln -s "$(realpath "$MX_CHECKPOINTS/$1")" "$1"
    else
        echo "replay.sh: not replayed: a block about $1, which is not in MX_CHECKPOINTS" >&2
        return 1
    fi
}

replay_markdown() {
    inside=
    while IFS= read -r line; do
        case $inside$line in
        '```console') inside=yes ;;
        '```console+'*) has_checkpoint "${line#*+}" && inside=yes ;;
        'yes```') inside= ;;
        'yes$ '*)
            printf '%s\n' "$line"
            sh -c "${line#??}" </dev/null 2>&1 | sed 's/ *$//'
            continue
            ;;
        yes*) continue ;;
        esac
        printf '%s\n' "$line"
    done
}

case $transcript in
*.md) replay_markdown <"$transcript" >../replayed ;;
*) replay <"$transcript" >../replayed ;;
esac
if [ "${3-}" = --update ]; then
    cp ../replayed "$transcript"
else
    diff -u "$transcript" ../replayed
fi
