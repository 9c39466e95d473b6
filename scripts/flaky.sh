#!/usr/bin/env bash
# flaky.sh [PACKAGE…] runs the tests of each package repeatedly while the processors are kept busy,
# and names the flaky tests. Without arguments it takes all packages. It exits with 1 if a test has
# failed.
#
#   COUNT    how often each package is run (30)
#   EACH     seconds for one package; a slow package is run less often, but at least once (300)
#   TOTAL    seconds for all of them; packages that are not reached are named (14400)
#   LOOPS    busy loops beside the tests (twice as many as there are processors)
#   RACE     1: build with the race detector
#
# The output of every failed run is kept below logs/flaky.
set -uo pipefail
cd "$(dirname "$0")/.."

COUNT=${COUNT:-30} EACH=${EACH:-300} TOTAL=${TOTAL:-14400}
LOOPS=${LOOPS:-$((2 * $(getconf _NPROCESSORS_ONLN)))}
race=
[ -z "${RACE:-}" ] || race=-race

work=$(mktemp -d)
loops=()
stop_loops() {
  [ ${#loops[@]} -eq 0 ] || kill "${loops[@]}" 2>/dev/null
  rm -rf "$work"
}
trap stop_loops EXIT
for _ in $(seq "$LOOPS"); do
  (while :; do :; done) &
  loops+=($!)
done

rm -rf logs/flaky
mkdir -p logs/flaky
packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' "${@:-./...}" | sort -u) || exit 1
total=$(wc -l <<<"$packages")
echo "Running $total packages up to $COUNT times each, beside $LOOPS busy loops, for at most $((TOTAL / 60)) minutes."

failures=0 number=0
while read -r package folder; do
  number=$((number + 1))
  short=${package#github.com/troupe-engine/troupe/}
  if [ $SECONDS -ge "$TOTAL" ]; then
    echo "not reached: $short"
    continue
  fi
  if ! go test -c $race -o "$work/tests" "$folder" >"$work/build" 2>&1; then
    cat "$work/build"
    failures=$((failures + 1))
    continue
  fi
  [ -x "$work/tests" ] || continue
  began=$SECONDS runs=0 failed=0
  while [ $runs -lt "$COUNT" ] && { [ $runs -eq 0 ] || [ $((SECONDS - began)) -lt "$EACH" ]; }; do
    runs=$((runs + 1))
    if ! (cd "$folder" && "$work/tests" -test.count=1 -test.timeout=30m) >"$work/output" 2>&1 </dev/null; then
      failed=$((failed + 1))
      cp "$work/output" "logs/flaky/${short//\//-}-$runs.log"
      names=$(grep -oE '^--- FAIL: [^ ]+' "$work/output" | sed 's/--- FAIL: //' | tr '\n' ' ')
      echo "  failed in run $runs of $short: ${names:-the whole run, see logs/flaky}"
    fi
  done
  failures=$((failures + failed))
  echo "$number/$total $short: $failed of $runs runs failed, $(((SECONDS - began) / runs)) s each"
  rm -f "$work/tests"
done <<<"$packages"

if [ $failures -gt 0 ]; then
  echo "FAIL: $failures runs failed; their output is in logs/flaky"
  exit 1
fi
echo "No run failed."
