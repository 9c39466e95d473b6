#!/usr/bin/env bash
# Checks that podman, runc and a static busybox are installed, because the container tests start a
# container host of their own. Installs Debian's packages if it may; otherwise reports in one line
# what is missing.
set -euo pipefail

absent() {
  local program
  for program in podman runc busybox; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null || echo "$program"
  done
}

missing() {
  echo "The checks of containers need podman, runc and busybox (a static one), of which $(absent | paste -sd' ') cannot be found: $1." >&2
  exit 1
}

[ -n "$(absent)" ] || exit 0
command -v apt-get >/dev/null || missing "install them and put them in PATH"
[ "$(id -u)" -eq 0 ] || missing "run 'sudo apt-get install --no-install-recommends podman runc busybox-static uidmap'"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "Installing Debian's packages podman, runc and busybox-static for the checks of containers …"
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends podman runc busybox-static; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  missing "'apt-get install' failed as shown above; install them some other way"
fi
[ -z "$(absent)" ] || missing "the packages did not bring them"
