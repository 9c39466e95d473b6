#!/bin/sh
# Counts what it reads: its input is one line of JSON.
read -r line
echo "counting in $ORK_TASK_NAME" >&2
echo "ORK_OUTPUT:$(printf %s "$line" | grep -o 'file-[0-9]' | wc -l)"
