package history

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/timeline"
)

func (h *Handler) addTimelineRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "get-timeline", Method: http.MethodGet, Path: "/v1/tasks/{task}/timeline", Tag: "history",
		Summary: "Get a task's timeline",
		Text: "The visits of a scope with their waits and attempts, and the critical path. For a " +
			"visit with many attempts it counts them in bins. The history is read once: repeated " +
			"requests, also for other parts, only read what was added since."}, h.getTimeline)
}

type timelineInput struct {
	catalog.TaskPath
	Scope string    `query:"scope" maxLength:"20000" doc:"Scope: inner_scope of the step that contains it; absent or / = the task's root."`
	From  time.Time `query:"from" doc:"Start of the time: visits that ended before are omitted."`
	To    time.Time `query:"to" doc:"End of the time: visits that started later are omitted."`
	Bins  int       `query:"bins" minimum:"1" maximum:"2000" default:"400" doc:"Maximum number of bins for the attempts of a visit."`
}

func (h *Handler) getTimeline(ctx context.Context, in *timelineInput) (*route.Response[wire.Timeline], error) {
	row, err := h.Store.Task(ctx, in.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	if !in.From.IsZero() && !in.To.IsZero() && in.To.Before(in.From) {
		return nil, route.NewInvalidError("query.to", "send a time that is later than from", "to is before from")
	}
	plan, err := h.Reader.Plan(ctx, row.VersionID)
	if err != nil {
		return nil, err
	}
	scope := strings.TrimPrefix(in.Scope, rootScope)
	kept := h.timelines.findOrCreate(timelineKey{row.ID, row.CreatedAt, scope}, plan)
	if !kept.t.Known() {
		return nil, route.NewNotFoundError("query.scope", "send inner_scope of a step of the flow", "there is no scope %.200q", in.Scope)
	}
	w := timeline.Window{From: millisOrNone(in.From), To: millisOrNone(in.To), Now: h.Engine.Now().UnixMilli(), Bins: cmp.Or(in.Bins, 400)}
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
	if answer.StartedMS < 0 {
		return nil, route.NewNotFoundError("query.scope", "send inner_scope of a step that has started",
			"no step has started in the scope %.200q", in.Scope)
	}
	return &route.Response[wire.Timeline]{Body: answer}, nil
}

func millisOrNone(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMilli(), 1)
}

// toTimeline converts a timeline. Its times are relative to base.
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
			told[i] = wire.TimelineWait{Kind: w.For, StartedMS: after(w.Start), EndedMS: after(w.End)}
		}
		return told
	}
	told := wire.Timeline{BaseMS: base, StartedMS: after(begun), EndedMS: after(ended), FromMS: after(t.From),
		ToMS: after(t.To), Critical: t.Critical, Omitted: t.LeftOut,
		Lanes: make([]wire.TimelineLane, len(t.Lanes)), Pauses: waits(t.Pauses)}
	for i := range t.Lanes {
		told.Lanes[i] = toLane(&t.Lanes[i], after, waits)
	}
	return told
}

func toLane(l *timeline.LaneTold, after func(int64) int64, waits func([]timeline.Wait) []wire.TimelineWait) wire.TimelineLane {
	told := wire.TimelineLane{Node: l.Node, Visit: l.Visit, EnteredMS: after(l.Entered),
		EndedMS: after(l.Ended), State: l.State, Units: l.Units,
		Failed: l.Failed, HasInnerScope: l.Inside, BinMS: l.BinMS, OmittedAttempts: l.LeftOut()}
	for _, b := range l.Bins {
		told.Bins = append(told.Bins, wire.TimelineBin{AtMS: after(b.At), Running: b.Running, Failed: b.Failed})
	}
	if l.Bins == nil {
		told.Waits = waits(l.Waits)
	}
	for _, a := range l.Attempts {
		one := wire.TimelineAttempt{Unit: a.Unit, Attempt: a.Attempt, StartedMS: after(a.Start),
			EndedMS: after(a.End), State: string(a.State)}
		if a.Begun > 0 {
			one.ClaimedMS = after(a.Begun)
		}
		told.Attempts = append(told.Attempts, one)
	}
	return told
}

// readJournalFrom reads the rows after a row of a journal, in parts. It returns the number of the
// last row that was read completely.
func (h *Handler) readJournalFrom(ctx context.Context, task string, after int64, event func(*flow.Event)) (int64, error) {
	for {
		rows, err := h.Store.Rows(ctx, task, after, part)
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
