#!/usr/bin/env bash
# Makes what the members of compose.yaml keep secret, once: what is there stays. FOLDER is where compose.yaml is.
set -euo pipefail
cd "${1:-$(dirname "$0")}"
random() { head -c "$1" /dev/urandom | base64 | tr -d '\n'; }
plain() { random 32 | tr -d '+/='; } # for URLs, too

mkdir -p -m 700 secrets
# The folder is closed to others; the files are open to the user that the container runs as.
[ -e secrets/gossip-key ] || { random 32; echo; } >secrets/gossip-key
[ -e secrets/cluster-secret ] || { plain; echo; } >secrets/cluster-secret
chmod 444 secrets/gossip-key secrets/cluster-secret
[ -e .env ] || (umask 077 && printf 'POSTGRES_PASSWORD=%s\nTROUPE_TOKEN=%s\n' "$(plain)" "$(plain)" >.env)
