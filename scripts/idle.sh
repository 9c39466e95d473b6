#!/usr/bin/env bash
# idle.sh REV ROUNDS
#
# Starts `troupe serve` of this tree and of revision REV alternately, ROUNDS times each, on a new
# SQLite file and on a new database of one temporary PostgreSQL server. It prints medians and ranges
# of the milliseconds until /readyz answers 200, the CPU milliseconds this took, and the resident
# memory after idling for IDLE seconds (20), in total and without files, in MB. It also prints the
# sizes of both binaries. Less is better. It reads /proc, so it needs Linux.
set -euo pipefail
[ $# -eq 2 ] || [ -n "${IDLE_DIR:-}" ] || { sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
cd "$(dirname "$0")/.."
idle=${IDLE:-20}

# one TREE STORE starts a member and prints its measurements.
one() {
  local port pid begun ready cpu
  port=$((20000 + RANDOM % 10000))
  begun=$(date +%s%N)
  "$IDLE_DIR/$1" serve --store "$2" --listen "127.0.0.1:$port" >"$IDLE_DIR/log" 2>&1 &
  pid=$!
  until curl -sf -o /dev/null "http://127.0.0.1:$port/readyz"; do
    kill -0 "$pid" 2>/dev/null || { cat "$IDLE_DIR/log" >&2; return 1; }
    sleep 0.005
  done
  ready=$((($(date +%s%N) - begun) / 1000000))
  cpu=$(awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) * 1000 / hz }' "/proc/$pid/stat")
  sleep "$idle"
  awk -v ready="$ready" -v cpu="$cpu" '/^VmRSS/ { all = $2 } /^RssAnon/ { anon = $2 } END { printf "%d %d %.1f %.1f\n", ready, cpu, all / 1024, anon / 1024 }' "/proc/$pid/status"
  kill "$pid"
  wait "$pid" || true
}

# In the second invocation the server is running and the programs are built.
if [ -n "${IDLE_DIR:-}" ]; then
  psql=$(command -v psql || ls /usr/lib/postgresql/*/bin/psql | tail -n 1)
  for round in $(seq "$1"); do
    for tree in $([ $((round % 2)) -eq 1 ] && echo "other this" || echo "this other"); do
      rm -f "$IDLE_DIR"/idle.db*
      echo "sqlite $tree $(one "$tree" "sqlite:$IDLE_DIR/idle.db")"
      "$psql" -q -c 'CREATE DATABASE idle' "$DATABASE_URL"
      echo "postgres $tree $(one "$tree" "${DATABASE_URL%/*}/idle?sslmode=disable")"
      "$psql" -q -c 'DROP DATABASE idle WITH (FORCE)' "$DATABASE_URL"
    done
  done
  exit
fi

rev=$1 rounds=$2
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/tree" 2>/dev/null || true; rm -rf "$dir"' EXIT
git worktree add --quiet --detach "$dir/tree" "$rev"
go build -o "$dir/this" ./cmd/troupe
(cd "$dir/tree" && go build -o "$dir/other" ./cmd/troupe)
go build -o "$dir/bench" ./cmd/bench
IDLE_DIR=$dir "$dir/bench" -workload peer -- "$PWD/scripts/idle.sh" "$rounds" | tee "$dir/lines" >&2

# spread COLUMN STORE TREE prints the median, the lowest and the highest value of a column.
spread() {
  awk -v store="$2" -v tree="$3" -v column="$1" '$1 == store && $2 == tree { print $column }' "$dir/lines" | sort -n |
    awk '{ all[NR] = $1 } END { printf "%s (%s to %s)", all[int((NR + 1) / 2)], all[1], all[NR] }'
}
printf '\nThis tree beside %s\n' "$rev"
for store in sqlite postgres; do
  column=3
  for what in "ms until it is ready" "ms of a processor" "MB resident" "MB of them no file's"; do
    printf '%-9s %-22s this %-24s other %s\n' "$store" "$what" "$(spread $column $store this)" "$(spread $column $store other)"
    column=$((column + 1))
  done
done
printf '%-32s this %-24s other %s\n' "bytes of the binary" "$(stat -c %s "$dir/this")" "$(stat -c %s "$dir/other")"
