#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The script of docs/howto under real Slurm daemons on this host, with a separate configuration, key
# and sockets. slurm_daemons_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
. "$(dirname "$0")/signals.sh"
script=$(realpath "$2")/docs/howto/slurm-array.sh
PATH=$PATH:/usr/sbin:/sbin
for program in munged mungekey slurmctld slurmd sbatch sinfo python3; do
    if ! command -v $program >/dev/null; then
        echo "skipped: no $program (slurm-wlm, munge)"
        exit 77
    fi
done
if [ "$(id -u)" != 0 ]; then
    echo 'skipped: slurmd runs as root'
    exit 77
fi
scratch=$(mktemp -d)
chmod 755 "$scratch"  # munged refuses a socket in a folder that others cannot enter
daemons=
stop() {
    for pid in $daemons; do kill "$pid" 2>/dev/null || true; done
    for pid in $daemons; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$scratch"
}
trap stop EXIT
cd "$scratch"

fail() {
    echo "$*" >&2
    tail -n 20 ./*.log >&2 || true
    exit 1
}
# Ports that nobody has.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'; }
host=$(uname -n)
mkdir state spool bin
ln -s "$mx" bin/mx
cat >slurm.conf <<END
ClusterName=mx
SlurmctldHost=${host%%.*}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$scratch/munge.socket
CryptoType=crypto/munge
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
NodeName=${host%%.*} NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=5 State=UP
END
SLURM_CONF=$scratch/slurm.conf
export SLURM_CONF

mungekey --create --keyfile="$scratch/munge.key"
munged --foreground --force --key-file="$scratch/munge.key" --socket="$scratch/munge.socket" \
    --pid-file="$scratch/munged.pid" --log-file="$scratch/munged.log" \
    --seed-file="$scratch/munged.seed" >munge.log 2>&1 &
daemons=$!
soon test -S munge.socket
slurmctld -D >slurmctld.log 2>&1 &
daemons="$! $daemons"
slurmd -D -N "${host%%.*}" >slurmd.log 2>&1 &
daemons="$! $daemons"
idle() { sinfo --noheader --format=%T | grep -q idle; }
soon idle

PATH=$scratch/bin:$PATH
mx synth -o model.safetensors --preset layernorm --quiet
mx analyze model.safetensors -r mxfp4 -r nvfp4 --json one.json --quiet
timeout 600 sbatch --wait --array=1-5 "$script" model.safetensors -r mxfp4 -r nvfp4 >sbatch.log 2>&1 ||
    fail "sbatch: $(cat sbatch.log)"
mx merge parts/part-*.json --json all.json --quiet
cmp one.json all.json
# Lost parts are made again, with the same number of parts.
rm parts/part-2.json parts/part-4.json all.json
code=0
mx merge parts/part-*.json --json all.json >commands 2>said || code=$?
[ $code = 1 ] && [ ! -e all.json ]
grep -q '2 of 5 parts are missing' said
N=5 timeout 600 sbatch --wait --array=2,4 "$script" model.safetensors -r mxfp4 -r nvfp4 >sbatch.log 2>&1 ||
    fail "sbatch: $(cat sbatch.log)"
mx merge parts/part-*.json --json all.json --quiet
cmp one.json all.json
# A task that fails makes the job fail.
code=0
timeout 600 sbatch --wait --array=1-2 "$script" nowhere.safetensors >sbatch.log 2>&1 || code=$?
[ $code != 0 ] || fail 'a job that failed ended with 0'
grep -q 'cannot open' mx-1.log
