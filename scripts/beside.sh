#!/usr/bin/env bash
# beside.sh REV ROUNDS [FLAG…]
#
# Compares this tree with revision REV, alternately, for ROUNDS rounds. Each run has a new database
# of one temporary PostgreSQL server. It prints the medians of steps per second (more is better;
# below 1.00 this tree is slower), and of the 50th and 99th percentile, the memory, the CPU time per
# step of the member and of PostgreSQL, and the WAL (less is better). Then it prints the ratios per
# round: median, lowest and highest. Flags are for cmd/bench and precede those of the workloads: -n
# 20 -width 100 is a quick look.
#
# QUICK=1 runs each workload for only a few seconds. BEYOND=1.15 fails if the CPU time per step, of
# the member or of PostgreSQL, is more than 1.15 times as much, both by the ratio and by the best
# rounds of both trees. Noise affects CPU time little, and wall-clock time much. A workload beyond
# the limit is measured again, and fails only if it exceeds the limit again.
set -euo pipefail
[ $# -ge 2 ] || [ -n "${BESIDE_DIR:-}" ] || { sed -n '2,14p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
cd "$(dirname "$0")/.."

# In the second invocation the server is running and the programs are built.
if [ -n "${BESIDE_DIR:-}" ]; then
  rounds=$1; shift
  psql=$(command -v psql || ls /usr/lib/postgresql/*/bin/psql | tail -n 1)
  both() { # NAME FLAG…
    local tree name=$1; shift
    [ -z "${ONLY:-}" ] || grep -qxF "$name" <<<"$ONLY" || return 0
    for tree in $trees; do
      "$psql" -q -c 'CREATE DATABASE beside' "$DATABASE_URL"
      "$BESIDE_DIR/$tree" -store "${DATABASE_URL%/*}/beside?sslmode=disable" "$@" | sed "s/^{/{\"tree\":\"$tree\",\"name\":\"$name\",/"
      "$psql" -q -c 'DROP DATABASE beside WITH (FORCE)' "$DATABASE_URL"
    done
  }
  for round in $(seq "$rounds"); do
    # The first tree sees another state of the server, so the order alternates.
    trees=$([ $((round % 2)) -eq 1 ] && echo "other this" || echo "this other")
    if [ -n "${QUICK:-}" ]; then
      both "chain by func" -workload chain -n 2000 "$@"
      both "chain by push" -workload chain -worker push -n 500 "$@"
      both "chain by pull" -workload chain -worker pull -n 300 "$@"
      both "fan-out of 1,000" -workload fanout -width 1000 -n 40 "$@"
      both "latency" -workload latency -n 500 "$@"
      continue
    fi
    for worker in func push pull attach; do
      both "chain by $worker" -workload chain -worker "$worker" "$@"
    done
    both "fan-out of 1,000" -workload fanout -width 1000 -n 200 "$@"
    both "fan-out of 100,000" -workload fanout -width 100000 -n 2 "$@"
    both "latency" -workload latency -n 3000 "$@"
    both "dag fan-out" -workload dagfanout -n 60 "$@"
  done
  exit
fi

rev=$1 rounds=$2; shift 2
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/tree" 2>/dev/null || true; rm -rf "$dir"' EXIT
if [ -n "${BEYOND:-}" ]; then
  go list -deps -f '{{if not .Standard}}{{with .Module}}{{if .Main}}:(glob){{$.Dir}}/*.go{{range $.EmbedFiles}}
:(literal){{$.Dir}}/{{.}}{{end}}{{end}}{{end}}{{end}}' ./cmd/bench >"$dir/sources"
  printf '%s\n' go.mod go.sum ':(exclude,glob)**/*_test.go' >>"$dir/sources"
  if xargs -d '\n' git diff --quiet "$rev" -- <"$dir/sources"; then
    echo "There is nothing to measure: the program is the same as in $rev."
    exit
  fi
fi
git worktree add --quiet --detach "$dir/tree" "$rev"
go build -o "$dir/this" ./cmd/bench
(cd "$dir/tree" && go build -o "$dir/other" ./cmd/bench)

# measure runs the workloads, and writes those with too much CPU time to worse.
measure() {
  BESIDE_DIR=$dir "$dir/this" -workload peer -- "$PWD/scripts/beside.sh" "$rounds" "$@" | tee "$dir/lines" >&2
  printf '\nThis tree beside %s\n' "$rev"
  "$dir/this" -workload beside -beyond "${BEYOND:-0}" <"$dir/lines" 2>"$dir/worse" || { cat "$dir/worse" >&2; exit 1; }
}
measure "$@"
[ -s "$dir/worse" ] || exit 0
ONLY=$(cat "$dir/worse"); export ONLY
printf '\nMore than %s times as much CPU per step, so once more:\n%s\n' "$BEYOND" "$ONLY" >&2
measure "$@"
[ -s "$dir/worse" ] || exit 0
printf '\nMore than %s times as much CPU per step as in %s, twice:\n%s\n' "$BEYOND" "$rev" "$(cat "$dir/worse")" >&2
exit 1
