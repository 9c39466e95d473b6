package carriers

import (
	"context"
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Body returns the request body for workers, which is also the stdin of scripts:
// {"input":any,"params":{…},"key":"…"}.
func Body(job *flow.Job) []byte {
	b := make([]byte, 0, len(job.Input)+len(job.Params)+160)
	b = append(b, `{"input":`...)
	b = appendOr(b, job.Input, "null")
	b = append(b, `,"params":`...)
	b = appendOr(b, job.Params, "{}")
	return append(append(append(b, `,"key":"`...), job.Key()...), `"}`...) // no key needs escaping
}

func appendOr(b []byte, raw json.RawMessage, empty string) []byte {
	if len(raw) == 0 {
		return append(b, empty...)
	}
	return append(b, raw...)
}

// Pause waits between two tries. It returns false if the job was canceled.
func Pause(ctx context.Context, ms int64) bool {
	if ctx.Err() != nil {
		return false
	}
	if ms <= 0 {
		return true
	}
	timer := time.NewTimer(flow.Milliseconds(ms))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
