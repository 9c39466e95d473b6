package engine

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
)

// MaxPollBytes is the maximum total size of the jobs in one answer to a poll. A single job may be
// larger.
const MaxPollBytes = 8 << 20

// IsDelivered reports whether a task has received a command. This includes commands that the task
// rejected.
func IsDelivered(err error) bool {
	switch flow.ErrorKindOf(err) {
	case flow.Busy, flow.Moved:
		return false
	case "":
		return err == nil
	}
	return true
}

// JobKey identifies an attempt. It is cheaper than the id of the job.
type JobKey struct {
	Task string
	At   flow.Address
}

// BytesOf returns the size of a command's values in bytes.
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
