#!/usr/bin/env bash
# ork.sh [ROUNDS [STORE]]
#
# Runs the profiles of Ork's own performance test: workflow files sent over HTTP to a `troupe serve`
# in its own process, compared with a bare loop that starts the same programs. It also compares a
# workflow of programs that do nothing with the same flow of Go functions, and Python functions in
# warm interpreters with a new interpreter for each. It prints tables: medians of ROUNDS rounds (5),
# in which the compared runs alternate. STORE is postgres (a temporary server, the default) or
# sqlite. It takes about five minutes; nothing else should run meanwhile. It fails if a target is
# missed.
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
