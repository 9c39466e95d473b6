#!/usr/bin/env bash
# where.sh [FOLDER]
#
# Prints how the time of a step divides, as tables: for the member by a CPU profile, for PostgreSQL
# by perf (Debian's package linux-perf, as root; without it only the total is known). It takes about
# two minutes; QUICK=1 takes half a minute. FOLDER keeps the profiles.
set -euo pipefail
cd "$(dirname "$0")/.."

# In the second invocation the server is running and the program is built.
if [ -n "${WHERE_DIR:-}" ]; then
  name=$1; shift
  psql=$(command -v psql || ls /usr/lib/postgresql/*/bin/psql | tail -n 1)
  "$psql" -q -c 'CREATE DATABASE bench' "$DATABASE_URL"
  perf=
  if command -v perf >/dev/null && [ "$(id -u)" -eq 0 ]; then
    # Processes that the server starts later are included.
    perf record -q -e cpu-clock -F 499 -o "$WHERE_DIR/$name.data" -p "$(echo "$BENCH_PG_PID" $(pgrep -P "$BENCH_PG_PID") | tr ' ' ,)" >/dev/null 2>&1 &
    perf=$!
    sleep 1 # earlier samples would lack function names
  fi
  "$WHERE_DIR/bench" -store "${DATABASE_URL%/*}/bench?sslmode=disable" -cpuprofile "$WHERE_DIR/$name.profile" "$@" >"$WHERE_DIR/$name.json"
  [ -z "$perf" ] || { kill -INT "$perf"; wait "$perf" || true; }
  exit
fi

dir=${1:-}
[ -n "$dir" ] || { dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; }
mkdir -p "$dir"
go build -o "$dir/bench" ./cmd/bench
part=${QUICK:+10}; part=${part:-1} # divisor of the full amount of work
of() { # NAME TASKS FLAG…
  local name=$1 n=$2; shift 2
  WHERE_DIR=$dir "$dir/bench" -workload peer -- "$PWD/scripts/where.sh" "$name" "$@" -n $((n / part))
  go tool pprof -traces "$dir/bench" "$dir/$name.profile" >"$dir/$name.traces" 2>/dev/null
  [ ! -f "$dir/$name.data" ] || perf report -i "$dir/$name.data" --no-children --sort symbol --stdio 2>/dev/null | grep '%' >"$dir/$name.perf" || true
}
of chain 20000 -workload chain
of fan-out 800 -workload fanout
of attached 10000 -workload chain -worker attach
of pull 4000 -workload chain -worker pull
"$dir/bench" -workload where "$dir" chain fan-out attached pull
