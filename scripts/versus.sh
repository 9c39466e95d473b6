#!/usr/bin/env bash
# versus.sh ROUNDS CHAIN FANOUT LATENCY
#
# Measures Troupe and another engine alternately, on temporary servers with the same default
# settings, and prints the medians. CHAIN, FANOUT and LATENCY are the other engine's commands for
# the same work: 10 steps in sequence with 64 in flight, 1,000 units at once, and 3 steps one task
# at a time. Each finds its server in DATABASE_URL and prints one JSON line (peer, backend,
# workload, steps_per_s, p50_ms, p99_ms).
set -euo pipefail
[ $# -eq 4 ] || { sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
rounds=$1; shift
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/bench" ./cmd/bench
for _ in $(seq "$rounds"); do
  i=0
  for workload in chain fanout latency; do
    i=$((i + 1))
    "$dir/bench" -workload "$workload" -store postgres
    # shellcheck disable=SC2086 # a command and its arguments
    "$dir/bench" -workload peer -- ${!i}
  done
  "$dir/bench" -workload raw -store postgres
done | tee "$dir/lines" >&2
"$dir/bench" -workload table < "$dir/lines"
