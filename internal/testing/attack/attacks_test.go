package attack

import "slices"

// attacks are all attacks, in order of execution.
var attacks = slices.Concat(onValues, onDecisions, onPolls, onMemory, onLists, onDefinitions, onConnections, onWorkers, onHooks)

// waits is a flow whose tasks wait for a signal.
const waits = yaml(`
start: wait
nodes:
  wait: {kind: wait_event, params: {signal_key: $shared.go}}
`)
