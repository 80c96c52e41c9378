# SPDX-License-Identifier: Apache-2.0
# Waiting for events, and signals to programs that are at work. Nothing here depends on how fast the
# machine is.

# soon COMMAND...: waits until it succeeds; after five minutes the script fails.
soon() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ "$tries" -ge 6000 ]; then
            echo "nothing came of: $*" >&2
            exit 1
        fi
        sleep 0.05
    done
}

# at_work PID PROGRAM: whether the program handles signals, or has ended.
at_work() {
    kill -0 "$1" 2>/dev/null || return 0
    [ "$(readlink "/proc/$1/exe")" = "$2" ] || return 1
    [ $((0x$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status") & 2)) -ne 0 ]
}

# start PROGRAM ARGUMENT...: in the background, with its output in stdout and stderr, until it handles
# signals. Sets pid. Shells make background jobs ignore Ctrl-C; this one does not.
start() {
    env --default-signal=INT "$@" >stdout 2>stderr &
    pid=$!
    soon at_work "$pid" "$1"
}

# stop SIGNAL: sends it to the program of start, and sets code to its exit code.
stop() {
    kill -"$1" "$pid" 2>/dev/null || true
    code=0
    wait "$pid" || code=$?
}
