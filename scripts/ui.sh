#!/usr/bin/env bash
# Builds and checks the pages in api/ui. Usage: ui.sh build|check|shots|bench
#
#   build   builds api/ui/dist from the sources
#   check   checks that dist matches the sources, that its sizes are within their limits,
#           and that the pages work in a browser
#   shots   takes the pictures in docs/images
#   bench   measures the cost of large tasks in a browser
#
# It needs node (20.19 or newer) with npm. The build tools come in the versions and with the hashes
# of their lock file. The browser is Debian's chromium, which is installed if it is missing and
# installation is possible; CHROMIUM names another one.
set -euo pipefail
cd "$(dirname "$0")/../api/ui"

die() { echo "ui: $*" >&2; exit 1; }

node_there() {
  command -v node >/dev/null && command -v npm >/dev/null || die "node (20.19 or newer) with npm is needed to build the pages: install it from nodejs.org or your system"
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    die "node 20.19 or newer is needed, here is $(node --version)"
}

# packages installs the packages of the lock file unless they are installed: the stamp is a copy of
# the lock file.
packages() {
  cmp -s package-lock.json node_modules/.stamp && return
  npm ci --ignore-scripts --no-progress --loglevel=error
  cp package-lock.json node_modules/.stamp
}

browser_there() {
  export CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
  [ -z "$CHROMIUM" ] || return 0
  command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ] ||
    die "the pages are tried in Chromium, which cannot be found: install it ('sudo apt-get install --no-install-recommends chromium'), or name one with CHROMIUM"
  echo "Installing Debian's package chromium to try the pages in …"
  local log; log=$(mktemp)
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; die "'apt-get install chromium' failed as shown above; install it some other way"; }
  rm -f "$log"
  CHROMIUM=$(command -v chromium)
}

build_to() { UI_OUT=$1 npx --no-install vite build --logLevel warn; }

binary() {
  TROUPE=$(mktemp -d)/troupe
  export TROUPE
  (cd ../.. && go build -o "$TROUPE" ./cmd/troupe)
}

same() {
  local fresh; fresh=$(mktemp -d)
  build_to "$fresh"
  diff -rq "$fresh" dist >&2 || die "dist is not what the sources build: run 'make ui' and commit what it changes"
  rm -rf "$fresh"
}

packed() { local sum=0 f; for f in "$@"; do sum=$((sum + $(gzip -9c "$f" | wc -c))); done; echo $sum; }

# budget NAME LIMIT FILES checks the number of transferred bytes.
budget() {
  local name=$1 limit=$2 size; shift 2
  size=$(packed "$@")
  printf '  %-34s %7d of %7d bytes\n' "$name" "$size" "$limit"
  [ "$size" -le "$limit" ] || die "$name is too large: leave something out, or load it when it is needed"
}

# most FILE prints the size limit of a file that is not part of the first page.
most() { case $1 in */codemirror.js) echo 150000 ;; *) echo 60000 ;; esac; }

budgets() {
  local first=(dist/index.html $(grep -o 'assets/[a-z0-9.-]*\.\(js\|css\)' dist/index.html | sed 's|^|dist/|')) f
  echo "What the pages weigh, compressed:"
  budget "the first page" 200000 "${first[@]}"
  for f in dist/assets/*.js; do
    [[ " ${first[*]} " == *" $f "* ]] || budget "$(basename "$f"), when it is needed" "$(most "$f")" "$f"
  done
}

case "${1:-}" in
build)
  node_there; packages
  build_to dist
  ;;
check)
  node_there; packages; browser_there
  npx --no-install tsc
  npx --no-install vitest run --reporter=dot
  same; budgets
  binary
  node --test --test-reporter=spec test/browser/*.test.mjs
  ;;
shots)
  node_there; packages; browser_there; binary
  node test/browser/shots.mjs ../../docs/images
  ;;
bench)
  node_there; packages; browser_there; binary
  node test/browser/bench.mjs
  ;;
*) die "usage: scripts/ui.sh build|check|shots|bench" ;;
esac
