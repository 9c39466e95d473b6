package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// This file has functions for queue jobs that the families of routes share.

// These are prefixes of job ids. Queue entries and runs are the same jobs under two names.
const (
	QueuePrefix = "q-"
	RunPrefix   = "run-"
)

// JobOf parses the job id of a dialect. Ids of /v1 have no prefix.
func JobOf(id, prefix string) (job, task string, a flow.Address, err error) {
	job = strings.TrimPrefix(id, prefix)
	task, a, err = flow.ParseJobID(job)
	return job, task, a, err
}

// longestPoll bounds a long poll, so that a client that is gone is detected.
const longestPoll = time.Minute

// Poll claims jobs for a request and waits up to waitMS. It returns no jobs if the client is gone
// or the server is stopping.
func Poll(w http.ResponseWriter, r *http.Request, e engine.Engine, p engine.Poll, waitMS int64) (engine.Jobs, error) {
	ctx, cancel := stream.Stay(w, r)
	defer cancel()
	p.Wait = time.Duration(max(min(waitMS, longestPoll.Milliseconds()), 0)) * time.Millisecond
	jobs, err := e.Poll(ctx, p)
	if ctx.Err() != nil && len(jobs) == 0 {
		return nil, nil
	}
	return jobs, err
}

// longestExtend is the longest extension of a claim.
const longestExtend = 24 * time.Hour

// ExtendBy returns the duration by which a claim is extended. 0 stands for the default duration.
func ExtendBy(seconds float64) (time.Duration, error) {
	if !(seconds >= 0 && seconds <= longestExtend.Seconds()) {
		return 0, &Refusal{http.StatusBadRequest, flow.Invalid,
			fmt.Sprintf("extend must be between 0 and %d seconds", int(longestExtend.Seconds()))}
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// extendWait is how long a heartbeat waits for unreachable tasks. It is short, because the next
// heartbeat comes soon.
const extendWait = 5 * time.Second

// Extend extends a worker's claims.
func Extend(ctx context.Context, e engine.Engine, worker string, claims []engine.Claim, by time.Duration) (engine.Extended, error) {
	ctx, cancel := context.WithTimeout(ctx, extendWait)
	defer cancel()
	return engine.Extend(ctx, e, worker, claims, by)
}

// OrNull returns v, or null if v is empty.
func OrNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}

// OrObject returns v, or {} if v is empty.
func OrObject(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("{}")
	}
	return v
}
