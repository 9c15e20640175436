#!/bin/sh
# network.sh - fsbench_mpi where every rank is behind a network card of a known rate: in network namespaces of this
# machine.
#
# usage: network.sh FSBENCH_MPI RATE RANKS [ARGUMENT...]      like network.sh build/release/bench/fsbench_mpi 400mbit 4
#
# Makes a bridge and a namespace for each rank, limits both directions of its link by tc's token bucket, and starts the
# ranks there with Open MPI over TCP.  Root, ip and tc are needed.  What it measures is the sum's bytes: the cores are
# those of one machine.  The bridge and the namespaces are removed at the end.
set -eu
program=$(realpath "$1") rate=$2 ranks=$3
shift 3
work=$(mktemp -d)
net=10.77.0

take_down() {
    for i in $(seq 1 "$ranks"); do
        ip netns del "fsrank$i" 2>/dev/null || true
        ip link del "fsveth$i" 2>/dev/null || true
    done
    ip link del fsbridge 2>/dev/null || true
    rm -rf "$work"
}
trap take_down EXIT INT TERM

ip link add fsbridge type bridge
ip addr add $net.254/24 dev fsbridge
ip link set fsbridge up
for i in $(seq 1 "$ranks"); do
    ip netns add "fsrank$i"
    ip link add "fsveth$i" type veth peer name eth0 netns "fsrank$i"
    ip link set "fsveth$i" master fsbridge up
    ip -n "fsrank$i" addr add "$net.$i/24" dev eth0
    ip -n "fsrank$i" link set eth0 up
    ip -n "fsrank$i" link set lo up
    ip netns exec "fsrank$i" tc qdisc add dev eth0 root tbf rate "$rate" burst 128kb latency 400ms
    tc qdisc add dev "fsveth$i" root tbf rate "$rate" burst 128kb latency 400ms
done

# Open MPI calls this in place of ssh: ADDRESS COMMAND...  It counts a namespace with its own host name as a machine.
cat >"$work/agent" <<'AGENT'
#!/bin/sh
rank=${1##*.}
shift
exec ip netns exec "fsrank$rank" unshare --uts sh -c "hostname fsrank$rank; $*"
AGENT
chmod +x "$work/agent"
hosts=$(seq -s, -f "$net.%g" 1 "$ranks")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive
mpirun.openmpi --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 --mca btl tcp,self \
    --mca btl_tcp_if_include $net.0/24 --mca oob_tcp_if_include $net.0/24 --mca mpi_yield_when_idle 1 --bind-to none \
    -x OMP_WAIT_POLICY -H "$hosts" -n "$ranks" "$program" --network "tcp $rate" "$@"
