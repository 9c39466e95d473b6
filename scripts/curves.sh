#!/usr/bin/env bash
# curves.sh [FOLDER]
#
# Measures the cost of a step as work grows: over tasks in flight, nodes, units, bytes, history and
# members, each run on a temporary PostgreSQL of its own. It writes the lines of cmd/bench to
# FOLDER/curves.jsonl and draws them as pictures beside it; the default FOLDER is docs/explanation/performance.
# It takes a quarter of an hour; QUICK=1 takes about two minutes. PART=5 does a fifth of the work at
# each point. CURVES="in-flight payload" measures only those and keeps the lines of the others.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-docs/explanation/performance}
mkdir -p "$folder"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/bench" ./cmd/bench

at() { # X FLAG…
  local x=$1; shift
  "$dir/bench" -store postgres "$@" | sed "s/^{/{\"curve\":\"$curve\",\"x\":$x,/" | tee -a "$dir/lines" >&2
}
# most returns the larger number, least the smaller one.
most() { echo $(($1 > $2 ? $1 : $2)); }
least() { echo $(($1 < $2 ? $1 : $2)); }

# few omits the slow points in a quick look.
few() { [ -z "${QUICK:-}" ] && echo "$1 $2" || echo "$1"; }
part=${PART:-${QUICK:+5}}; part=${part:-1}

in_flight() { for x in $(few "1 16 256" "4 64 1024 4096 10000"); do at "$x" -workload chain -concurrency "$x" -n "$(least $(($(most 300 $((x * 40))) / part)) $(most 6000 $((2 * x))))"; done; }
nodes() { for x in $(few "10 100 1000" "10000"); do at "$x" -workload dagchain -steps "$x" -n "$(most 16 $((60000 / x / part)))" -concurrency 16; done; }
diamond() { for x in $(few "10 100 1000" "10000"); do at "$x" -workload diamond -steps "$x" -n "$(most 8 $((60000 / x / part)))" -concurrency 8; done; }
# About a thousand units are in flight, of at most 64 tasks.
units() { for x in $(few "1 10 100 1000" "10000 100000"); do at "$x" -workload fanout -width "$x" -n "$(most 3 $(least 3000 $((300000 / x / part))))" -concurrency "$(most 1 "$(least 64 $((1000 / x)))")"; done; }
payload() { for x in $(few "100 1000 10000" "100000 1000000"); do at "$x" -workload chain -payload "$x" -concurrency 16 -n "$(most 16 $(least 3000 $((30000000 / x / part))))"; done; }
history() { for x in $(few "10 1000" "100 10000 100000 1000000"); do at "$x" -workload history -history "$x" -steps $((1000 / part)); done; }
members() { for x in $(few "1 3" "2"); do at "$x" -workload together -members "$x" -n $((3000 / part)); done; }

all="in-flight nodes diamond units payload history members"
for curve in ${CURVES:-$all}; do
  "${curve//-/_}"
done
if [ -n "${CURVES:-}" ] && [ -f "$folder/curves.jsonl" ]; then
  for curve in $CURVES; do sed -i "/^{\"curve\":\"$curve\",/d" "$folder/curves.jsonl"; done
  cat "$folder/curves.jsonl" >>"$dir/lines"
fi
sort -s -t, -k1,1 "$dir/lines" >"$folder/curves.jsonl"
"$dir/bench" -workload curves "$folder" <"$folder/curves.jsonl"
