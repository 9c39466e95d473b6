#!/usr/bin/env bash
# Creates the secrets of the members of compose.yaml once; existing ones are kept. FOLDER is the
# folder of compose.yaml.
set -euo pipefail
cd "${1:-$(dirname "$0")}"
random() { head -c "$1" /dev/urandom | base64 | tr -d '\n'; }
plain() { random 32 | tr -d '+/='; } # for URLs, too

mkdir -p -m 700 secrets
# Other users cannot enter the folder; the user of the container can read the files.
[ -e secrets/gossip-key ] || { random 32; echo; } >secrets/gossip-key
[ -e secrets/cluster-secret ] || { plain; echo; } >secrets/cluster-secret
chmod 444 secrets/gossip-key secrets/cluster-secret
[ -e .env ] || (umask 077 && printf 'POSTGRES_PASSWORD=%s\nTROUPE_TOKEN=%s\n' "$(plain)" "$(plain)" >.env)
