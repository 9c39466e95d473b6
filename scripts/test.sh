#!/usr/bin/env bash
# test.sh ARGUMENT… runs go test with these arguments. It prints each package's result as soon as it
# is known, and the progress at least every 20 seconds. The environment is that exported by the
# Makefile.
set -euo pipefail

verbose=
packages=()
for argument in "$@"; do
  case $argument in
    -v | -test.v | -v=true) verbose=-v ;;
    ./* | .) packages+=("$argument") ;;
  esac
done

count=$(go list "${packages[@]}" | sort -u | wc -l)
processors=$(getconf _NPROCESSORS_ONLN)
echo "Testing $count packages on $processors processors."
if [ "$count" -gt 50 ]; then
  echo "All of them take about 9 minutes on two idle processors, and 25 under the race detector."
fi

printer=$(mktemp -d)/testprogress
trap 'rm -rf "$(dirname "$printer")"' EXIT
CGO_ENABLED=0 go build -o "$printer" ./internal/tools/testprogress
go test -json "$@" | "$printer" $verbose
