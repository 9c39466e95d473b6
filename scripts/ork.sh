#!/usr/bin/env bash
# ork.sh [ROUNDS [STORE]]
#
# Runs the profiles of Ork's own performance test, workflow files that are sent over HTTP to a `troupe serve` in a process of its own, beside a bare
# loop that starts the same programs; a workflow of programs that do nothing beside the same flow with functions of Go; and functions of Python by
# warm interpreters beside one started for each. Prints tables: medians of ROUNDS (5), in which what is compared takes turns. STORE is postgres
# (a throwaway server, the default) or sqlite. About five minutes; nothing else should run meanwhile. It fails when a figure is not what it is to be.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5} store=${2:-postgres}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/bench" ./cmd/bench
go build -o "$dir/troupe" ./cmd/troupe
for workload in ork-a ork-b ork-c ork-d python; do
  "$dir/bench" -workload "$workload" -store "$store" -rounds "$rounds" -troupe "$dir/troupe" | tee -a "$dir/lines" >&2
done

printf '\n%s, %s processors, %s; medians of %s rounds\n\n' "$(uname -sm)" "$(getconf _NPROCESSORS_ONLN)" "$store" "$rounds"
"$dir/bench" -workload orktable <"$dir/lines"
