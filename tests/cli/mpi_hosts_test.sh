#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An MPI job over two hosts writes the bytes of one run. The hosts are network namespaces of this machine,
# each with its own name, address and /tmp; Open MPI reaches the other as it does over ssh.
# mpi_hosts_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
skip() {
    echo "skipped: $*"
    exit 77
}
"$mx" version | grep -q '^MPI  *yes.*Open MPI' || skip 'mx was built without Open MPI (libopenmpi-dev)'
command -v mpirun >/dev/null || skip 'no mpirun (openmpi-bin)'
for tool in ip unshare mount hostname; do
    command -v $tool >/dev/null || skip "no $tool"
done
[ "$(id -u)" = 0 ] || skip 'network namespaces are made by root'
one=mx-one-$$
two=mx-two-$$
ip netns add $one 2>/dev/null || skip 'no network namespace can be made here'
scratch=$(mktemp -d)
trap 'ip netns del $one; ip netns del $two 2>/dev/null || true; rm -rf "$scratch"' EXIT
unshare --uts --mount true 2>/dev/null || skip 'no namespace for names and mounts can be made here'
ip netns add $two
ip link add mx0 netns $one type veth peer name mx0 netns $two
ip -n $one address add 10.213.0.1/24 dev mx0
ip -n $two address add 10.213.0.2/24 dev mx0
for host in $one $two; do
    ip -n $host link set lo up
    ip -n $host link set mx0 up
done

# The files of the job are on a file system that both hosts have; the rest of /tmp is their own.
shared=$scratch/shared
mkdir "$shared"
cat >"$scratch/on" <<END_OF_ON
#!/bin/sh
# on ADDRESS COMMAND...: runs a command on a host, as ssh does.
case \$1 in
10.213.0.1) name=$one ;;
10.213.0.2) name=$two ;;
*) exit 1 ;;
esac
shift
ulimit -c 0
exec ip netns exec \$name unshare --uts --mount sh -c "
    hostname \$name
    [ -e /mnt/on ] || mount --bind '$shared' /mnt
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs tmpfs /tmp
    cd /mnt
    \$*"
END_OF_ON
chmod +x "$scratch/on"
# What a host runs must not lie in /tmp, which it has for itself.
cp "$scratch/on" "$shared"
cp "$mx" "$shared/mx"
job() {
    "$shared/on" 10.213.0.1 "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        mpirun --host 10.213.0.1:$1,10.213.0.2:$2 --map-by node --bind-to none \
        --mca plm_rsh_agent /mnt/on --mca plm rsh --mca oob_tcp_if_include mx0 \
        --mca btl self,vader,tcp --mca btl_tcp_if_include mx0 $3"
}
fail() {
    echo "$*" >&2
    exit 1
}
job 1 1 hostname >"$scratch/names" || fail 'mpirun reaches no second host'
[ "$(sort "$scratch/names" | tr '\n' ' ')" = "$one $two " ] || fail "the hosts are $(cat "$scratch/names")"

cd "$shared"
"$mx" synth -o model.safetensors --preset layernorm --quiet
for command in "analyze model.safetensors -t '*layers.0.*' -r mxfp4 -r nvfp4" \
    "cluster model.safetensors -t '*layers.[01].*norm*'"; do
    eval "'$mx' $command --json one.json --csv one.csv --quiet"
    for copies in '1 1' '2 1' '1 3'; do
        job $copies "/mnt/mx $command --threads 1 --json all.json --csv all.csv --quiet"
        for ending in json csv; do
            cmp one.$ending all.$ending || fail "mx $command on $copies: $ending differs"
        done
        rm all.*
    done
done
# Parts of arrays are files in a folder that both see.
"$mx" quantize model.safetensors -r mxfp4 --packed -o one.safetensors --quiet
job 2 2 '/mnt/mx quantize model.safetensors -r mxfp4 --packed -o all.safetensors --threads 1 --quiet'
cmp one.safetensors all.safetensors
# A host that lacks the model ends the job, which writes nothing.
cat >lacking <<'END_OF_LACKING'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || cd /tmp
exec /mnt/mx "$@"
END_OF_LACKING
chmod +x lacking
code=0
job 1 1 '/mnt/lacking analyze model.safetensors -r mxfp4 --json all.json --quiet' >said 2>&1 || code=$?
[ $code != 0 ] && [ ! -e all.json ] && grep -q 'model.safetensors' said || fail "$code: $(cat said)"
