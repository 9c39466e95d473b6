package carriers

import (
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// NoWorker returns the error of a job without a matching worker. It names the service and labels.
func NoWorker(e *flow.Exec) string {
	text := "no worker for service " + e.Service
	if len(e.Labels) > 0 {
		text += " with the labels " + strings.Join(e.Labels, ", ")
	}
	return text
}
