#!/usr/bin/env bash
# Fails when go generate changes anything: what is generated must be what is committed. It compares
# before and after, so it also works with changes that are not committed yet.
set -euo pipefail
state() { git status --porcelain && git diff; }

before=$(state)
go generate ./...
if [ "$before" != "$(state)" ]; then
  git --no-pager diff --stat >&2
  echo "Generated files are out of date: run 'make generate' and commit what it changes." >&2
  exit 1
fi
