#!/usr/bin/env bash
# Checks that systemd-analyze is installed, because the tests of deploy check the unit with it. It
# needs no running systemd. Installs Debian's package if it may; otherwise reports in one line what
# is missing.
set -euo pipefail

missing() {
  echo "The tests of deploy need systemd-analyze: $1." >&2
  exit 1
}

command -v systemd-analyze >/dev/null && exit 0
command -v apt-get >/dev/null || missing "install systemd"
[ "$(id -u)" -eq 0 ] || missing "run 'sudo apt-get install systemd'"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "Installing Debian's package systemd for the tests …"
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends systemd; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  missing "'apt-get install systemd' failed as shown above; install it some other way"
fi
command -v systemd-analyze >/dev/null || missing "the package systemd did not bring it"
