#!/usr/bin/env bash
# Prints the commit with which this tree is to be compared: where it branched off the main branch,
# or on the main branch the previous commit. Prints nothing, and the reason on stderr, if that
# commit is missing (a shallow clone, the first commit) or has no benchmark.
set -euo pipefail

nothing() { echo "Nothing to measure this tree beside: $1." >&2; exit 0; }

base=
for main in origin/HEAD origin/main origin/master main master; do
  [ -z "$base" ] || break
  base=$(git merge-base HEAD "$main" 2>/dev/null || true)
  [ "$base" != "$(git rev-parse HEAD)" ] || base=
done
base=${base:-HEAD^}
if ! commit=$(git rev-parse --verify --quiet "$base^{commit}"); then
  [ "$(git rev-parse --is-shallow-repository)" = false ] || nothing "the clone is shallow, so $base is not there"
  nothing "there is no $base"
fi
git cat-file -e "$commit:cmd/bench/main.go" 2>/dev/null || nothing "$commit has no cmd/bench"
echo "$commit"
