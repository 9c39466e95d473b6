#!/usr/bin/env bash
# long.sh NAME FOLDER COMMAND… runs a long test of the package in FOLDER, and keeps its output in
# logs/NAME.log if it fails. The output names the seeds and kills that failed.
set -euo pipefail
name=$1 folder=$2
shift 2

[ -d "$folder" ] || { echo "There is no $folder yet: nothing to run."; exit 0; }
mkdir -p logs
log=logs/$name.log
if "$@" 2>&1 | tee "$log"; then
  rm -f "$log"
else
  echo "Failed; the whole output is in $log" >&2
  exit 1
fi
