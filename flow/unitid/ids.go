package unitid

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
)

// Clients of Ork name a task of a run by a UUID alone. Therefore the ids of runs for such clients
// end in taskBits zero bits. The ids of their tasks encode the node, counted from 1, and the unit
// in these bits, so that no table is needed.
//
// The other bits are enough: with a run per millisecond, two runs get the same id once in a hundred
// thousand years, and then the second one is rejected.
const (
	unitBits = 20
	nodeBits = 17
	taskBits = unitBits + nodeBits
)

// RunID returns the id of a run. It derives from another UUID, with the last bits cleared.
func RunID(id uuid.UUID) string {
	low := binary.BigEndian.Uint64(id[8:])
	binary.BigEndian.PutUint64(id[8:], low&^(1<<taskBits-1))
	return id.String()
}

// TaskID returns the id of a unit of a node. The id is not a UUID if the run's id was not made by
// RunID.
func TaskID(run string, node, unit int) string {
	id, err := uuid.Parse(run)
	low := binary.BigEndian.Uint64(id[8:])
	if err != nil || low&(1<<taskBits-1) != 0 || node+1 >= 1<<nodeBits || unit >= 1<<unitBits {
		return fmt.Sprintf("%s.%d.%d", run, node, unit)
	}
	binary.BigEndian.PutUint64(id[8:], low|uint64(node+1)<<unitBits|uint64(unit))
	return id.String()
}

// ParseTaskID splits an id that TaskID returned.
func ParseTaskID(text string) (run string, node, unit int, err error) {
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
