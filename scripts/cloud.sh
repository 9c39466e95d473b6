#!/usr/bin/env bash
# cloud.sh checks the module in cloud: vet, staticcheck and its tests, which build troupe-cloud and
# need no account. It also checks that troupe itself does not grow by the dependencies of clouds.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

CGO_ENABLED=0 GOOS=linux GOARCH=amd64 GOAMD64=v1 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$dir/troupe" ./cmd/troupe
size=$(stat -c %s "$dir/troupe")
most=$((51613822 + 3000000)) # size before the cloud module existed, plus the growth of the engine since
[ "$size" -le "$most" ] || { echo "troupe has $size bytes, more than the $most that it may have: what has it come to need?"; exit 1; }

go build -o "$dir/staticcheck" honnef.co/go/tools/cmd/staticcheck
cd cloud
go vet ./...
go vet -tags live ./cmd/troupe-cloud
"$dir/staticcheck" ./...
# Go does not notice changes of the binary that these tests build, so nothing is taken from the
# cache. Most of the tests mostly wait.
go test -count=1 -parallel 4 ${TESTFLAGS:-} ./...
