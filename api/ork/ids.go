package ork

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
)

// Clients of Ork name a task of a run by a UUID alone. So the ids of runs that are made here end in taskBits bits that are 0, in which
// the ids of their tasks say which one they are: the node, counted from 1, and the unit, so that no table has to be kept. The
// others are enough: with a run each millisecond two have the same id once in a hundred thousand years, and the second one is refused.
const (
	unitBits = 20
	nodeBits = 17
	taskBits = unitBits + nodeBits
)

// newRunID makes the id of a run; of the same seed it is the same, "" = of none.
func newRunID(seed string) string {
	id := uuid.Must(uuid.NewV7())
	if seed != "" {
		id = uuid.NewSHA1(runSpace, []byte(seed))
	}
	low := binary.BigEndian.Uint64(id[8:])
	binary.BigEndian.PutUint64(id[8:], low&^(1<<taskBits-1))
	return id.String()
}

// runSpace is the name space of ids that are made of idempotency keys.
var runSpace = uuid.MustParse("2d6f51f7-3f0e-5f0a-9a3c-6b0c0a0d9e11")

// taskID is the id of a unit of a node. Of a run whose id was chosen elsewhere it is no UUID.
func taskID(run string, node, unit int) string {
	id, err := uuid.Parse(run)
	low := binary.BigEndian.Uint64(id[8:])
	if err != nil || low&(1<<taskBits-1) != 0 || node+1 >= 1<<nodeBits || unit >= 1<<unitBits {
		return fmt.Sprintf("%s.%d.%d", run, node, unit)
	}
	binary.BigEndian.PutUint64(id[8:], low|uint64(node+1)<<unitBits|uint64(unit))
	return id.String()
}

// parseTaskID is the inverse.
func parseTaskID(text string) (run string, node, unit int, err error) {
	if parts := strings.Split(text, "."); len(parts) == 3 {
		node, err = strconv.Atoi(parts[1])
		if err == nil {
			unit, err = strconv.Atoi(parts[2])
		}
		if err == nil {
			return parts[0], node, unit, nil
		}
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return "", 0, 0, flow.Errorf(flow.Invalid, "the id %.60q is no UUID", text)
	}
	low := binary.BigEndian.Uint64(id[8:])
	which := low & (1<<taskBits - 1)
	binary.BigEndian.PutUint64(id[8:], low&^(1<<taskBits-1))
	return id.String(), int(which>>unitBits) - 1, int(which & (1<<unitBits - 1)), nil
}

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
