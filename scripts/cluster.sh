#!/usr/bin/env bash
# cluster.sh [ROUNDS [REV]]
#
# Measures what a cluster on this machine does, on throwaway PostgreSQL servers, and prints a table: medians of ROUNDS (5), in which what is
# compared takes turns. About five minutes; nothing else should run meanwhile. It fails when a figure is not what it is to be, and with REV
# it also prints how a cluster of one does beside that revision (scripts/beside.sh). TASKS=10000 parks fewer tasks, for a quick look.
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
  [ $((round % 2)) -eq 1 ] || workers="pull push attach func" # who goes first finds the machine in another state
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
