package attack

import "slices"

// attacks in the order in which they are carried out.
var attacks = slices.Concat(onValues, onDecisions, onPolls, onMemory, onLists, onDefinitions, onConnections, onWorkers, onHooks)

// waits parks its tasks until somebody signals them.
const waits = yaml(`
start: wait
nodes:
  wait: {kind: wait_event, params: {signal_key: $shared.go}}
`)
