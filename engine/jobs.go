package engine

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
)

// MaxPollBytes is the largest size of the jobs in one answer to a poll, unless a single job is
// larger.
const MaxPollBytes = 8 << 20

// IsDelivered reports whether a task has received a command, even if it refused it.
func IsDelivered(err error) bool {
	switch flow.ErrorKindOf(err) {
	case flow.Busy, flow.Moved:
		return false
	case "":
		return err == nil
	}
	return true
}

// JobKey identifies an attempt without building its id.
type JobKey struct {
	Task string
	At   flow.Address
}

// BytesOf returns the size of a command's values.
func BytesOf(cmd flow.Command) int {
	switch c := cmd.(type) {
	case flow.Start:
		return len(c.Params)
	case flow.Signal:
		return len(c.Value)
	case flow.Answer:
		return len(c.Value)
	case flow.Report:
		return len(c.Output) + len(c.Error) + c.GivenUp.Bytes()
	case flow.Append:
		return bytesOfAll(c.Items)
	case flow.RecordSteps:
		return c.Bytes()
	}
	return 0
}

func bytesOfAll(values []json.RawMessage) (sum int) {
	for _, v := range values {
		sum += len(v)
	}
	return sum
}
