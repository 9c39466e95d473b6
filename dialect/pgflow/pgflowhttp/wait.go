package pgflowhttp

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/flow"
)

// Default and maximum of the time of a wait.
const (
	defaultWait = 5 * time.Minute
	longestWait = time.Hour
)

// pgWait is the status that a caller waits for.
type pgWait struct{ step, status string }

// handleWait answers 200 when a run or step has the wanted status. It answers 409 when the status
// has become impossible, and 408 when the time is up.
func (p *pgflow) handleWait(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	want := pgWait{step: q.Get("step"), status: q.Get("status")}
	if err := want.validateWait(); err != nil {
		return err
	}
	timeout, err := waitTime(q.Get("timeout_ms"))
	if err != nil {
		return err
	}
	run := runID(r)
	v, err := p.reader.View(r.Context(), run)
	if err != nil {
		return noRun(run, err)
	}
	ctx, leave := stream.Stay(w, r)
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s, reached, err := p.awaitRun(ctx, v.State, v.Seq, want)
	switch {
	case err != nil:
		return err
	case !reached && r.Context().Err() == nil && ctx.Err() != nil:
		return &api.Refusal{Status: http.StatusRequestTimeout, Kind: api.TimedOut,
			Text: "the run is " + shownAs(s) + "; it was not as wanted in time"}
	case !reached:
		return flow.Errorf(flow.Conflict, "%s", want.missedReason(s))
	}
	api.WriteJSON(w, http.StatusOK, statesOf(s))
	return nil
}

// waitTime parses the time of a wait, in milliseconds.
func waitTime(text string) (time.Duration, error) {
	if text == "" {
		return defaultWait, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 {
		return 0, flow.Errorf(flow.Invalid, "timeout_ms %.40q is no time: write a number of milliseconds, such as 30000", text)
	}
	return time.Duration(min(ms, longestWait.Milliseconds())) * time.Millisecond, nil
}

func (q *pgWait) validateWait() error {
	words := []string{pgCompleted, pgFailed, pgCancelled, pgPaused, pgStarted}
	if q.step != "" {
		words = []string{pgStarted, pgCompleted, pgFailed, string(flow.StepSkipped)}
	}
	if q.status == "" {
		q.status = pgCompleted
	}
	if !slices.Contains(words, q.status) {
		return flow.Errorf(flow.Invalid, "status %.40q is none to wait for: write one of %v", q.status, words)
	}
	return nil
}

// awaitRun follows a run until it has the wanted status or can no longer reach it, or until ctx
// ends.
func (p *pgflow) awaitRun(ctx context.Context, s *flow.State, seq int64, want pgWait) (_ *flow.State, reached bool, err error) {
	reached, over, err := want.checkState(s)
	if reached || over || err != nil {
		return s, reached, err
	}
	for row, err := range p.engine.Watch(ctx, s.Task, seq) {
		if err != nil && ctx.Err() != nil {
			return s, false, nil
		}
		if err == nil {
			err = flow.Fold(s, row.Events)
		}
		if err != nil {
			return s, false, err
		}
		if reached, over, _ := want.checkState(s); reached || over {
			return s, reached, nil
		}
	}
	return s, false, nil
}

// checkState reports whether a run has the wanted status, or can never have it.
func (q *pgWait) checkState(s *flow.State) (reached, over bool, err error) {
	if q.step == "" {
		status := shownAs(s)
		return status == q.status, s.Status.Ended() || status == pgCancelled, nil
	}
	n := s.Root.Plan.Nodes[q.step]
	if n == nil || n.Dag == nil {
		return false, true, flow.Errorf(flow.NotFound, "run %.140q has no step %.140q", s.Task, q.step)
	}
	st := &s.Root.Nodes[n.Dag.Index]
	reached = string(st.Status()) == q.status || q.status == pgStarted && (st.StartedAt != 0 || st.Status() == flow.StepCompleted)
	return reached, st.Ended() || s.Status.Ended(), nil
}

func (q *pgWait) missedReason(s *flow.State) string {
	text := "the run is " + shownAs(s)
	if q.step != "" {
		st := toStep(s, s.Root.Plan.Nodes[q.step].Dag.Index)
		text += ", step " + q.step + " is " + st.Status
	}
	return text + ": it will not be " + q.status
}
