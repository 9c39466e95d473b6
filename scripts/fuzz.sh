#!/usr/bin/env bash
# Runs every Fuzz target of the module, for FUZZTIME each. A failing input stays in the package's
# testdata, where the ordinary tests will run it from then on.
set -euo pipefail
fuzztime=${FUZZTIME:-1m}

targets=$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { names = names " " $1 } /^ok/ { n = split(names, a, " "); for (i = 1; i <= n; i++) print $2, a[i]; names = "" }')
[ -n "$targets" ] || { echo "There are no Fuzz targets yet."; exit 0; }

while read -r package target; do
  echo "== $package $target"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$package" </dev/null
done <<<"$targets"
