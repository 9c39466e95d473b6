#!/usr/bin/env bash
# release.sh [FOLDER] builds the command for all platforms, or for those in PLATFORMS ("linux/amd64
# darwin/arm64 …"), into FOLDER (dist), with SHA256SUMS. It adds troupe-cloud, unless CLOUD is no,
# and troupe-library for the platforms that have one. The same commit and the same Go version give
# the same bytes on every machine: they contain no cgo, no path, and no time except that of the
# commit. VERSION is set by git describe unless it is given; without a repository set COMMIT and
# DATE too.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-dist}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
version=${VERSION:-$(git describe --tags --always --dirty)}
commit=${COMMIT:-$(git rev-parse HEAD)}
date=${DATE:-$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)}

module=$(go list -m)
mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -f "$out"/troupe_* "$out"/troupe-cloud_* "$out"/troupe-library_* "$out/SHA256SUMS"

build() { # FILE PACKAGE
  CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOAMD64=v1 GOARM64=v8.0 GOFLAGS='' go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X $module.release=$version -X $module.commit=$commit -X $module.date=$date" -o "$1" "$2"
  touch -d "$date" "$1"
  echo "$1"
}

for platform in $platforms; do
  os=${platform%/*} arch=${platform#*/}
  name=${version}_${os}_$arch
  [ "$os" != windows ] || name=$name.exe
  build "$out/troupe_$name" ./cmd/troupe
  [ "${CLOUD:-yes}" = no ] || (cd cloud && build "$out/troupe-cloud_$name" ./cmd/troupe-cloud)
  [ "$os" = windows ] || build "$out/troupe-library_$name" ./cmd/troupe-library # the only dynamically linked program
done
cd "$out"
sum() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }
sum troupe* >SHA256SUMS
touch -d "$date" SHA256SUMS
