package orkhttp

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/unitid"
)

// newRunID returns the id of a run. The same seed gives the same id; an empty seed gives a random
// id.
func newRunID(seed string) string {
	id := uuid.Must(uuid.NewV7())
	if seed != "" {
		id = uuid.NewSHA1(runSpace, []byte(seed))
	}
	return unitid.RunID(id)
}

// runSpace is the UUID name space of ids derived from idempotency keys.
var runSpace = uuid.MustParse("2d6f51f7-3f0e-5f0a-9a3c-6b0c0a0d9e11")

// ofTasks is the prefix of ids of runs that were not started over these routes, such as by a
// schedule. This dialect shows these ids without the prefix.
const ofTasks = "task-"

// publicRunID returns the id of a run as clients of Ork know it: a UUID.
func publicRunID(run string) string {
	if bare := strings.TrimPrefix(run, ofTasks); uuid.Validate(bare) == nil {
		return bare
	}
	return run
}

// runID returns the run in a request's path.
func (d *dialect) runID(r *http.Request) string {
	return d.storedRunID(r.Context(), r.PathValue("run"))
}

// storedRunID returns the id of a run in the store.
func (d *dialect) storedRunID(ctx context.Context, run string) string {
	id, err := uuid.Parse(run)
	if err != nil || strings.HasPrefix(run, ofTasks) {
		return run
	}
	if _, err := d.Store.Task(ctx, id.String()); api.Missing(err) {
		if _, err := d.Store.Task(ctx, ofTasks+id.String()); err == nil {
			return ofTasks + id.String()
		}
	}
	return id.String()
}

// checkRunID rejects an id that is not a UUID. The UUID may have the prefix ofTasks.
func checkRunID(id string) error {
	if _, err := uuid.Parse(strings.TrimPrefix(id, ofTasks)); err != nil {
		return flow.Errorf(flow.Invalid, "the id %.60q is no UUID", id)
	}
	return nil
}

// trimID returns the UUID in an id of a flow or a version.
func trimID(id string) string {
	return strings.TrimPrefix(strings.TrimPrefix(id, "flow-"), "ver-")
}
