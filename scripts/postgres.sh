#!/usr/bin/env bash
# Checks that PostgreSQL's server programs (initdb, postgres) are installed, because the tests start
# servers of their own. Searches the same places as internal/testing/pgtest. Installs Debian's package if it
# may; otherwise reports in one line what is missing.
set -euo pipefail

[ -z "${TROUPE_TEST_POSTGRES:-}" ] || exit 0 # the tests use a given server

found() {
  local dir
  for dir in ${PATH//:/ } "$(pg_config --bindir 2>/dev/null || true)" /usr/lib/postgresql/*/bin; do
    [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && return 0
  done
  return 1
}

missing() {
  echo "The tests need PostgreSQL's server programs (initdb, postgres): $1, or set TROUPE_TEST_POSTGRES to the DSN of a server." >&2
  exit 1
}

found && exit 0
command -v apt-get >/dev/null || missing "install them and put them in PATH"
[ "$(id -u)" -eq 0 ] || missing "run 'sudo apt-get install postgresql'"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "Installing Debian's package postgresql for the tests …"
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  missing "'apt-get install postgresql' failed as shown above; install them some other way"
fi
found || missing "the package postgresql did not bring them; install them and put them in PATH"
