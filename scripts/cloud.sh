#!/usr/bin/env bash
# cloud.sh checks the module in cloud: vet, staticcheck and its tests, which build troupe-cloud and need no account.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

go build -o "$dir/staticcheck" honnef.co/go/tools/cmd/staticcheck
cd cloud
go vet ./...
go vet -tags live ./cmd/troupe-cloud
"$dir/staticcheck" ./...
# Go does not notice changes of the binary that these tests build: nothing is taken from the cache.
go test -count=1 ${TESTFLAGS:-} ./...
