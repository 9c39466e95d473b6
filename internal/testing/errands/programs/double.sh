#!/bin/sh
# Doubles what it reads, and takes its time. It leaves a daemon behind, which is to end with it.
echo "$EXECUTION_ID begins" >> programs.log
setsid sleep 600 > /dev/null 2>&1 &
read -r n
sleep "0.$((1 + n % 8))"
echo "$EXECUTION_ID ends" >> programs.log
echo "ORK_OUTPUT:$((2 * n))"
