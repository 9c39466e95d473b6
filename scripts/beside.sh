#!/usr/bin/env bash
# beside.sh REV ROUNDS [FLAG…]
#
# Measures this tree beside revision REV, in turn, ROUNDS times, each run in a fresh database of one throwaway
# PostgreSQL server, and prints the medians, their ratio, and the least and the most of the rounds' own ratios: of steps
# per second (more is better; below 1.00 this tree is slower) and of the 50th and 99th percentile, the memory, and the CPU
# of the member per step (less is better). Flags are for cmd/bench and go before the workloads' own: -n 20 -width 100 is a quick look.
# QUICK=1 runs each workload for a few seconds only. BEYOND=1.15 fails when the CPU per step is more than 1.15 times as much: noise
# moves that little, and a wall clock much.
set -euo pipefail
[ $# -ge 2 ] || [ -n "${BESIDE_DIR:-}" ] || { sed -n '2,10p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
cd "$(dirname "$0")/.."

# The second time the server is there, and so are the programs.
if [ -n "${BESIDE_DIR:-}" ]; then
  rounds=$1; shift
  psql=$(command -v psql || ls /usr/lib/postgresql/*/bin/psql | tail -n 1)
  both() { # NAME FLAG…
    local tree name=$1; shift
    for tree in $trees; do
      "$psql" -q -c 'CREATE DATABASE beside' "$DATABASE_URL"
      "$BESIDE_DIR/$tree" -store "${DATABASE_URL%/*}/beside?sslmode=disable" "$@" | sed "s/^{/{\"tree\":\"$tree\",\"name\":\"$name\",/"
      "$psql" -q -c 'DROP DATABASE beside WITH (FORCE)' "$DATABASE_URL"
    done
  }
  for round in $(seq "$rounds"); do
    # Who goes first finds the server in another state, so they take turns in that, too.
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
git worktree add --quiet --detach "$dir/tree" "$rev"
go build -o "$dir/this" ./cmd/bench
(cd "$dir/tree" && go build -o "$dir/other" ./cmd/bench)
BESIDE_DIR=$dir "$dir/this" -workload peer -- "$PWD/scripts/beside.sh" "$rounds" "$@" | tee /dev/stderr >"$dir/lines"

echo
awk -v rev="$rev" -v beyond="${BEYOND:-0}" '
  function field(key,   at) {
    at = match($0, "\"" key "\":(\"[^\"]*\"|[0-9.e+-]+)")
    if (!at) return ""
    at = substr($0, RSTART, RLENGTH); sub(/^"[^"]*":/, "", at); gsub(/"/, "", at)
    return at
  }
  function median(list,   v, n, i, j, t) {
    n = split(list, v, " ")
    for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j-1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j-1]; v[j-1] = t }
    return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
  }
  {
    name = field("name"); tree = field("tree")
    if (!(name in known)) { known[name]; order[++names] = name }
    for (i = 1; i <= 5; i++) seen[tree, name, i] = seen[tree, name, i] " " field(metric[i])
  }
  # spread is the least and the most of what the rounds say.
  function spread(a, b,   va, vb, n, i, r, least, most) {
    n = split(a, va, " "); split(b, vb, " ")
    for (i = 1; i <= n; i++) if (vb[i] + 0) {
      r = va[i] / vb[i]
      if (!least || r < least) least = r
      if (r > most) most = r
    }
    return sprintf("%.2f–%.2f", least, most)
  }
  BEGIN { split("steps_per_s p50_ms p99_ms peak_rss_mb cpu_us_per_step", metric, " ") }
  END {
    printf "%-20s %-15s %12s %12s %8s  %s\n", "", "", "this tree", substr(rev, 1, 12), "ratio", "of the rounds"
    for (n = 1; n <= names; n++) for (i = 1; i <= 5; i++) {
      a = median(seen["this", order[n], i]); b = median(seen["other", order[n], i])
      printf "%-20s %-15s %12.2f %12.2f %8.2f  %s\n", i == 1 ? order[n] : "", metric[i], a, b, b ? a / b : 0, spread(seen["this", order[n], i], seen["other", order[n], i])
      if (i == 5 && beyond && b && a / b > beyond) { worse = worse "\n" order[n] " takes " sprintf("%.2f", a / b) " times as much CPU per step" }
    }
    if (worse) { print worse > "/dev/stderr"; exit 1 }
  }' "$dir/lines"
