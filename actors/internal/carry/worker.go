package carry

import (
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// NoWorker is the error of a job that nobody is there for. It says whom the job would need.
func NoWorker(e *flow.Exec) string {
	if len(e.Labels) == 0 {
		return "no worker"
	}
	return "no worker with the labels " + strings.Join(e.Labels, ", ")
}
