#!/bin/sh
# A worker that needs nothing but files: object-store-worker.sh COMMAND [ARGUMENT…]
#
# It carries out the attempt whose spec.json the variable TASK_SPEC_PATH names. The command reads spec.json on stdin and prints the output as
# JSON. What this script writes beside spec.json is heard: status.json, again and again, and output.json. Each is written under another name
# first, so that nobody reads a half of one.
folder=$(dirname "$TASK_SPEC_PATH")
attempt=$(sed 's/.*"attempt":\([0-9]*\).*/\1/' "$TASK_SPEC_PATH")
started=$(date -u +%Y-%m-%dT%H:%M:%SZ)

say() { # STATUS [ERROR]
	error=$(printf %s "$2" | tr -d '\\"' | tr '\n\t' '  ')
	printf '{"status":"%s","attempt":%s,"started_at":"%s","heartbeat":"%s","error":"%s"}' \
		"$1" "$attempt" "$started" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$error" >"$folder/.status.$$" &&
		mv "$folder/.status.$$" "$folder/status.json"
}

say running
(
	while sleep "${HEARTBEAT_SECONDS:-10}" && kill -0 $$ 2>/dev/null; do
		say running
		if [ -e "$folder/cancel.json" ]; then # nobody waits for it any longer
			kill -TERM $$
		fi
	done
) &
heart=$!
trap 'kill $work; stopped=yes' TERM INT

"$@" <"$TASK_SPEC_PATH" >"$folder/.output.$$" 2>"$folder/.errors.$$" &
work=$!
wait $work
code=$?
kill $heart 2>/dev/null
wait $heart 2>/dev/null
failure=${stopped:+stopped: }$(tail -n 1 "$folder/.errors.$$")
rm -f "$folder/.errors.$$"
if [ $code -ne 0 ]; then
	say failed "exit status $code: $failure"
	exit 1
fi
mv "$folder/.output.$$" "$folder/output.json"
say success
