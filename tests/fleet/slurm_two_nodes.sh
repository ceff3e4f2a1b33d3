#!/usr/bin/env bash
# A real Slurm on this machine, from Debian's packages: a controller, and two nodes n1 and n2 in the partition `all`.
# As root; where it runs already, nothing is done.
set -euo pipefail

if ! { command -v slurmctld && command -v slurmd && command -v munged; } >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    slurmctld slurmd slurm-client munge >/dev/null
fi
# What Slurm says of a node lags behind its daemon.
answers() { [[ $(pgrep -xc slurmd) == 2 ]] && timeout 5 sinfo -h -p all -t idle -o %D 2>/dev/null | grep -qx 2; }
if answers; then exit 0; fi

conf=/etc/slurm/slurm.conf
if [[ -e $conf ]] && ! grep -q "tests/fleet/slurm_two_nodes.sh" "$conf"; then
  echo "$conf is a site's own: left as it is" >&2
  exit 1
fi
host=$(hostname -s)
mkdir -p /etc/slurm /var/spool/slurmctld /var/spool/slurmd.n1 /var/spool/slurmd.n2 /var/log/slurm /run/munge
chown munge:munge /run/munge
cat >"$conf" <<CONF
# Written by tests/fleet/slurm_two_nodes.sh
ClusterName=trial
SlurmctldHost=$host
SlurmUser=root
AuthType=auth/munge
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd.%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
KillWait=2
SlurmdTimeout=10
NodeName=n1 NodeHostname=$host Port=17001 CPUs=1
NodeName=n2 NodeHostname=$host Port=17002 CPUs=1
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF
munge -n >/dev/null 2>&1 || su -s /bin/sh munge -c /usr/sbin/munged
for _ in {1..20}; do munge -n >/dev/null 2>&1 && break || sleep 0.2; done
pgrep -x slurmctld >/dev/null || slurmctld
# Each node has a CPU of its own where there are two, as two machines have.
mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
for place in 0 1; do
  node=n$((place + 1))
  pgrep -f "slurmd -N $node" >/dev/null || taskset -c "${cpus[place % ${#cpus[@]}]}" slurmd -N "$node"
done
for _ in {1..100}; do
  if answers; then exit 0; fi
  sleep 0.3
done
sinfo >&2 || true
echo "Slurm did not start: /var/log/slurm" >&2
exit 1
