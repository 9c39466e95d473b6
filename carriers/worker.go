package carriers

import (
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// NoFlow returns the reason why a function flow is held: no carrier has the function.
func NoFlow(e *flow.Exec) string {
	return flow.HeldAbsent + e.Func + ": register it with HandleFlow, and start the program or a worker"
}

// NoWorker returns the error of a job without a matching worker. It names the service and labels.
func NoWorker(e *flow.Exec) string {
	text := "no worker for service " + e.Service
	if len(e.Labels) > 0 {
		text += " with the labels " + strings.Join(e.Labels, ", ")
	}
	return text
}
