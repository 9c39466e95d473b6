#!/usr/bin/env bash
# Fails if go generate changes anything, because generated files have to be committed. It compares
# the state before and after, so it also works with uncommitted changes.
set -euo pipefail
state() { git status --porcelain && git diff; }

before=$(state)
go generate ./...
if [ "$before" != "$(state)" ]; then
  git --no-pager diff --stat >&2
  echo "Generated files are out of date: run 'make generate' and commit what it changes." >&2
  exit 1
fi
