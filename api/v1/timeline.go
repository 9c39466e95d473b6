package v1

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/timeline"
)

func (h *historyHandler) addTimelineRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "get-timeline", method: http.MethodGet, path: "/v1/tasks/{task}/timeline", tag: "history",
		summary: "See when what was under way",
		text: "The visits of a scope with their waits and attempts, and which of them its end " +
			"waited for. Of a visit with many attempts it is told how many there were when. " +
			"The history is read once: who asks again, for another part of it too, pays for what has happened since."}, h.getTimeline)
}

type timelineInput struct {
	TaskPath
	Scope string    `query:"scope" maxLength:"20000" doc:"below of the step it is inside; absent or / = the task's root"`
	From  time.Time `query:"from" doc:"what ended before is left out"`
	To    time.Time `query:"to" doc:"what began later is left out"`
	Bins  int       `query:"bins" minimum:"1" maximum:"2000" default:"400" doc:"in which many attempts of a visit are counted, at most"`
}

func (h *historyHandler) getTimeline(ctx context.Context, in *timelineInput) (*bodyResponse[wire.Timeline], error) {
	row, err := h.store.Task(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	if !in.From.IsZero() && !in.To.IsZero() && in.To.Before(in.From) {
		return nil, newInvalidError("query.to", "send a time that is later than from", "it is before from")
	}
	plan, err := h.reader.Plan(ctx, row.VersionID)
	if err != nil {
		return nil, err
	}
	scope := strings.TrimPrefix(in.Scope, rootScope)
	kept := h.timelines.findOrCreate(timelineKey{row.ID, row.CreatedAt, scope}, plan)
	if !kept.t.Known() {
		return nil, newNotFoundError("query.scope", "send below of a step of the flow", "there is no scope %.200q", in.Scope)
	}
	w := timeline.Window{From: millisOrNone(in.From), To: millisOrNone(in.To), Now: h.engine.Now().UnixMilli(), Bins: cmp.Or(in.Bins, 400)}
	var answer wire.Timeline
	err = h.timelines.useExclusively(ctx, kept, func() error {
		kept.seq, err = h.readJournalFrom(ctx, in.Task, kept.seq, kept.t.Add)
		if err != nil {
			return err
		}
		answer = toTimeline(row.CreatedAt, kept.t.Begun, kept.t.Ended, kept.t.Tell(w))
		answer.Task, answer.Scope, answer.Seq = row.ID, scope, kept.seq
		return nil
	})
	if err != nil {
		return nil, err
	}
	if answer.Begun < 0 {
		return nil, newNotFoundError("query.scope", "send below of a step that has begun",
			"nothing has begun in the scope %.200q", in.Scope)
	}
	return &bodyResponse[wire.Timeline]{answer}, nil
}

func millisOrNone(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMilli(), 1)
}

// toTimeline converts a timeline; its times are relative to base.
func toTimeline(base, begun, ended int64, t timeline.Told) wire.Timeline {
	after := func(at int64) int64 {
		if at == 0 {
			return -1
		}
		return at - base
	}
	waits := func(list []timeline.Wait) []wire.TimelineWait {
		told := make([]wire.TimelineWait, len(list))
		for i, w := range list {
			told[i] = wire.TimelineWait{For: w.For, Start: after(w.Start), End: after(w.End)}
		}
		return told
	}
	told := wire.Timeline{Base: base, Begun: after(begun), Ended: after(ended), From: after(t.From),
		To: after(t.To), Critical: t.Critical, LeftOut: t.LeftOut,
		Lanes: make([]wire.TimelineLane, len(t.Lanes)), Pauses: waits(t.Pauses)}
	for i := range t.Lanes {
		told.Lanes[i] = toLane(&t.Lanes[i], after, waits)
	}
	return told
}

func toLane(l *timeline.LaneTold, after func(int64) int64, waits func([]timeline.Wait) []wire.TimelineWait) wire.TimelineLane {
	told := wire.TimelineLane{Node: l.Node, Visit: l.Visit, Entered: after(l.Entered),
		Ended: after(l.Ended), State: l.State, Units: l.Units,
		Failed: l.Failed, Inside: l.Inside, BinMS: l.BinMS, AttemptsCut: l.LeftOut()}
	for _, b := range l.Bins {
		told.Bins = append(told.Bins, wire.TimelineBin{T: after(b.At), Running: b.Running, Failed: b.Failed})
	}
	if l.Bins == nil {
		told.Waits = waits(l.Waits)
	}
	for _, a := range l.Attempts {
		one := wire.TimelineAttempt{Unit: a.Unit, Attempt: a.Attempt, Start: after(a.Start), End: after(a.End), State: string(a.State)}
		if a.Begun > 0 {
			one.Begun = after(a.Begun)
		}
		told.Attempts = append(told.Attempts, one)
	}
	return told
}

// readJournalFrom reads the rows after a row of a journal, in parts. It returns the last row that
// it has read completely.
func (h *historyHandler) readJournalFrom(ctx context.Context, task string, after int64, event func(*flow.Event)) (int64, error) {
	for {
		rows, err := h.store.Rows(ctx, task, after, part)
		if err != nil {
			return after, err
		}
		for _, row := range rows {
			events, err := flow.DecodeEvents(row.Events)
			if err != nil {
				return after, err
			}
			for i := range events {
				event(&events[i])
			}
			after = row.Seq
		}
		if !part.Full(rows) {
			return after, nil
		}
	}
}
