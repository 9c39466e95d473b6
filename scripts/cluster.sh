#!/usr/bin/env bash
# cluster.sh [ROUNDS [REV]]
#
# Measures a cluster on this machine, on temporary PostgreSQL servers, and prints a table: medians
# of ROUNDS rounds (5), in which the compared runs alternate. It takes about five minutes; nothing
# else should run meanwhile. It fails if a target is missed. With REV it also compares a cluster of
# one member with that revision (scripts/beside.sh). TASKS=10000 parks fewer tasks, for a quick
# look.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5} rev=${2:-}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/bench" ./cmd/bench
failed=0
measure() { # FLAG…
  "$dir/bench" -store postgres "$@" | tee -a "$dir/lines" >&2 || { echo "cluster.sh: this could not be measured: $*" >&2; failed=1; }
}

measure -workload members -rounds "$rounds"
for round in $(seq "$rounds"); do
  workers="func attach push pull"
  [ $((round % 2)) -eq 1 ] || workers="pull push attach func" # the first one sees another state of the machine
  for worker in $workers; do
    measure -workload chain -n 6000 -worker "$worker"
  done
done
measure -workload failover
measure -workload idle -settle 5s
measure -workload parked -n "${TASKS:-100000}" -settle 10s -watch 60s

echo
"$dir/bench" -workload figures <"$dir/lines" || failed=1
[ -z "$rev" ] || scripts/beside.sh "$rev" "$rounds"
exit $failed
