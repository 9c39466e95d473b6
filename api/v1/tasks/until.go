package tasks

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// awaitedStep is a step at the top level of a flow, for whose end a request waits.
type awaitedStep struct {
	node  string
	visit int // number of the visit; 0 means the newest visit that has ended
}

// parseAwaitedStep parses the name of a step: NODE, or NODE#2 for the second visit. It returns an
// error if the flow has no such node. A function may have steps of any name.
func parseAwaitedStep(where, text string, p *flow.Plan) (s awaitedStep, err error) {
	s.node = text
	if p.Root.Nodes[text] != nil {
		return s, nil
	}
	if i := strings.LastIndexByte(text, '#'); i >= 0 {
		if n, err := strconv.Atoi(text[i+1:]); err == nil && n > 0 {
			s = awaitedStep{text[:i], n}
		}
	}
	if p.Root.Code || p.Root.Nodes[s.node] != nil {
		return s, nil
	}
	hint := "send the key of a node at the top level of the flow"
	if near := flow.Nearest(s.node, slices.Sorted(maps.Keys(p.Root.Nodes))); near != "" {
		hint = "did you mean " + near + "?"
	}
	return s, route.NewInvalidError(where, hint, "the flow has no node %.80q", s.node)
}

// isEnd reports whether an event may end the step.
func (s *awaitedStep) isEnd(e *flow.Event) bool {
	return e.Scope == "" && e.Node == s.node && (e.Type == flow.StepEnded || e.Type == flow.StepRecorded)
}

// endedStep returns the newest matching visit that has ended; nil if there is none.
func (h *StartHandler) endedStep(ctx context.Context, task string, s awaitedStep) (found *wire.Step, err error) {
	const most, bytes = 100, 4 << 20
	q := flow.StepQuery{Node: s.node, Most: most, Bytes: bytes,
		States: []flow.StepStatus{flow.StepCompleted, flow.StepFailed, flow.StepSkipped}}
	for {
		page, err := h.Reader.Steps(ctx, task, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Steps {
			if v := &page.Steps[i]; s.visit == 0 || v.Visit == s.visit {
				step := render.ToStep(task, v)
				found = &step
			}
		}
		if !page.More {
			return found, nil
		}
		q.After = page.Next
	}
}

// awaitStep waits up to ms milliseconds for the end of a step, and returns the step. It returns nil
// if the step has not ended by then, or the task ended without the step. after is a journal row up
// to which the step has not ended.
func (h *StartHandler) awaitStep(ctx context.Context, task string, s awaitedStep, after, ms int64) (*wire.Step, error) {
	waiting, leave := route.LiftTimeLimits(ctx)
	defer leave()
	waiting, cancel := context.WithTimeout(waiting, time.Duration(ms)*time.Millisecond)
	defer cancel()
	var events []flow.Event
	for row, err := range h.Engine.Watch(waiting, task, after) {
		if err != nil {
			if waiting.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, err
		}
		if events, err = flow.DecodeEventsTo(events[:0], row.Events); err != nil {
			return nil, err
		}
		for i := range events {
			if !s.isEnd(&events[i]) {
				continue
			}
			if found, err := h.endedStep(ctx, task, s); err != nil || found != nil {
				return found, err
			}
		}
	}
	return nil, ctx.Err()
}
