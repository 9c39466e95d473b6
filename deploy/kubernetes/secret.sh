#!/usr/bin/env bash
# secret.sh STORE [NAMESPACE [NAME]] prints a Secret for the members, with random keys and a random
# token:
#
#   deploy/kubernetes/secret.sh 'postgres://troupe:PASSWORD@HOST/troupe' default troupe | kubectl create -f -
#
# Use create, not apply, so that existing keys are kept.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,6p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
case $1 in postgres://* | postgresql://*) ;; *) echo "secret.sh: STORE is to be a postgres:// URL" >&2; exit 2 ;; esac
random() { head -c 32 /dev/urandom | base64 | tr -d '\n'; }
encoded() { printf %s "$1" | base64 | tr -d '\n'; }

cat <<END
apiVersion: v1
kind: Secret
metadata:
  name: ${3:-troupe}
  namespace: ${2:-default}
type: Opaque
data:
  store: $(encoded "$1")
  token: $(encoded "$(random | tr -d '+/=')")
  gossip-key: $(encoded "$(random)")
  cluster-secret: $(encoded "$(random)")
END
