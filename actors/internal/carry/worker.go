package carry

import (
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// NoWorker is the error of a job that nobody is there for. It says whom the job would need.
func NoWorker(e *flow.Exec) string {
	text := "no worker for service " + e.Service
	if len(e.Labels) > 0 {
		text += " with the labels " + strings.Join(e.Labels, ", ")
	}
	return text
}
