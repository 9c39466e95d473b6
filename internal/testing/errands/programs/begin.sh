#!/bin/bash
# Begins a job outside, named like this attempt: the other system has to know nothing of it yet.
echo "$EXECUTION_ID begins" >> programs.log
read -r n
exec 3<> "/dev/tcp/${TROUPE_ERRANDS_OUTSIDE/://}"
job="/jobs?by=program&id=$EXECUTION_ID"
printf 'POST %s HTTP/1.0\r\n\r\n' "$job" >&3
read -r _ status _ <&3
[ "$status" = 201 ] || { echo "answered $status" >&2; exit 1; }
echo "$EXECUTION_ID ends" >> programs.log
echo "ORK_OUTPUT:{\"deferred\": [{\"job_id\": \"$EXECUTION_ID\", \"url\": \"http://$TROUPE_ERRANDS_OUTSIDE$job\", \"failure_value\": \"failed\"}], \"data\": $((2 * n))}"
