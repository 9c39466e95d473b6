package ork

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/ork"
)

// newRunID makes the id of a run; of the same seed it is the same, "" = of none.
func newRunID(seed string) string {
	id := uuid.Must(uuid.NewV7())
	if seed != "" {
		id = uuid.NewSHA1(runSpace, []byte(seed))
	}
	return ork.RunID(id)
}

// runSpace is the name space of ids that are made of idempotency keys.
var runSpace = uuid.MustParse("2d6f51f7-3f0e-5f0a-9a3c-6b0c0a0d9e11")

// runID is the run of a request's path, in one spelling.
func runID(r *http.Request) string {
	text := r.PathValue("run")
	if id, err := uuid.Parse(text); err == nil {
		return id.String()
	}
	return text
}

// checkRunID refuses what is neither a UUID nor an id of ours.
func checkRunID(id string) error {
	if _, err := uuid.Parse(strings.TrimPrefix(id, "task-")); err != nil {
		return flow.Errorf(flow.Invalid, "the id %.60q is no UUID", id)
	}
	return nil
}

// trimID is the UUID in an id of a flow or a version.
func trimID(id string) string {
	return strings.TrimPrefix(strings.TrimPrefix(id, "flow-"), "ver-")
}
