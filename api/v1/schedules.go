package v1

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/duration"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

// scheduleHandler serves schedules.
type scheduleHandler struct {
	catalog *flowCatalog
	starts  *startHandler

	store  api.Store
	engine engine.Engine
}

func (h *scheduleHandler) addScheduleRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "list-schedules", method: http.MethodGet, path: "/v1/schedules", tag: "schedules",
		summary: "List schedules, by name"}, h.listSchedules)
	registerOperation(rt, apiOperation{id: "get-schedule", method: http.MethodGet, path: "/v1/schedules/{schedule}", tag: "schedules",
		summary: "Read a schedule"}, h.getSchedule)
	registerOperation(rt, apiOperation{id: "set-schedule", method: http.MethodPut,
		path: "/v1/schedules/{schedule}", tag: "schedules", created: true,
		summary: "Make a schedule, or change it",
		text: "Each slot has one task, whatever happens to members meanwhile. One that fires " +
			"at other times from now on catches up with nothing that was before. One that a " +
			"definition has made is changed until the next version of its flow is published."}, h.setSchedule)
	registerOperation(rt, apiOperation{id: "delete-schedule", method: http.MethodDelete, path: "/v1/schedules/{schedule}", tag: "schedules",
		summary: "Delete a schedule", text: "Its tasks stay as they are."}, h.deleteSchedule)
	registerOperation(rt, apiOperation{id: "enable-schedule", method: http.MethodPost,
		path: "/v1/schedules/{schedule}/enable", tag: "schedules",
		summary: "Have a schedule fire", text: "What was due while it did not is not caught up."}, h.enableSchedule)
	registerOperation(rt, apiOperation{id: "disable-schedule", method: http.MethodPost,
		path: "/v1/schedules/{schedule}/disable", tag: "schedules",
		summary: "Have a schedule fire no longer", text: "Its tasks go on."}, h.disableSchedule)
	registerOperation(rt, apiOperation{id: "next-slots", method: http.MethodGet, path: "/v1/schedules/{schedule}/next", tag: "schedules",
		summary: "Tell the next slots of a schedule",
		text: "Also of one that does not fire for the moment; with what becomes of times " +
			"that do not exist or come twice."}, h.nextSlots)
	registerOperation(rt, apiOperation{id: "preview-schedule", method: http.MethodPost, path: "/v1/schedules-preview", tag: "schedules",
		summary: "Tell the slots that a schedule would have", text: "Nothing is kept."}, h.previewSchedule)
	registerOperation(rt, apiOperation{id: "trigger-schedule", method: http.MethodPost,
		path: "/v1/schedules/{schedule}/trigger", tag: "schedules", created: true,
		summary: "Start a task of a schedule now",
		text: "Whatever its slots and policies say, also when it does not fire for the " +
			"moment. Its slots stay as they are."}, h.triggerSchedule)
	registerOperation(rt, apiOperation{id: "backfill-schedule", method: http.MethodPost,
		path: "/v1/schedules/{schedule}/backfill", tag: "schedules",
		summary: "Start tasks for slots that have passed",
		text: "A slot that has had its task gets no other one. All begin at once, whatever " +
			"overlap says; a flow with concurrency holds them back. The request may be sent again."},
		h.backfillSchedule)
}

// SchedulePath identifies a schedule.
type SchedulePath struct {
	Schedule string `path:"schedule" maxLength:"128" doc:"name of the schedule" example:"nightly"`
}

func (h *scheduleHandler) scheduleBy(ctx context.Context, name string) (*persistence.Schedule, error) {
	found, err := h.store.Schedule(ctx, name)
	return found, noSchedule(name, err)
}

func noSchedule(name string, err error) error {
	if api.Missing(err) {
		return newNotFoundError("path.schedule", "GET /v1/schedules lists them", "there is no schedule %.140q", name)
	}
	return err
}

type listSchedulesInput struct {
	Paging
	Flow string `query:"flow" maxLength:"128" doc:"slug of the flow, or its id"`
}

func (h *scheduleHandler) listSchedules(ctx context.Context, in *listSchedulesInput) (*bodyResponse[wire.Page[wire.Schedule]], error) {
	at, _, err := in.parseCursor()
	if err != nil {
		return nil, err
	}
	filter := persistence.ScheduleFilter{After: at.name, Limit: in.Limit + 1}
	if in.Flow != "" {
		f, err := h.catalog.flowBy(ctx, "query.flow", in.Flow)
		if err != nil {
			return nil, err
		}
		filter.FlowID = f.ID
	}
	list, err := h.store.ListSchedules(ctx, filter)
	if err != nil {
		return nil, err
	}
	list, more := cutPage(list, in.Limit)
	page := wire.Page[wire.Schedule]{Items: make([]wire.Schedule, len(list))}
	for i := range list {
		if page.Items[i], err = h.toSchedule(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	if more {
		page.Next = listCursor{name: list[len(list)-1].Name}.String()
	}
	return &bodyResponse[wire.Page[wire.Schedule]]{page}, nil
}

func (h *scheduleHandler) getSchedule(ctx context.Context, in *SchedulePath) (*bodyResponse[wire.Schedule], error) {
	found, err := h.scheduleBy(ctx, in.Schedule)
	return h.scheduleAnswer(ctx, found, err)
}

func (h *scheduleHandler) scheduleAnswer(ctx context.Context, found *persistence.Schedule,
	err error) (*bodyResponse[wire.Schedule], error) {
	if err != nil {
		return nil, err
	}
	shown, err := h.toSchedule(ctx, found)
	return &bodyResponse[wire.Schedule]{shown}, err
}

type setScheduleInput struct {
	SchedulePath
	Body wire.ScheduleSpec
}

func (h *scheduleHandler) setSchedule(ctx context.Context, in *setScheduleInput) (*statusResponse[wire.SetSchedule], error) {
	spec, err := toSpec(&in.Body)
	if err != nil {
		return nil, err
	}
	if err := CheckLabels(in.Body.Labels); err != nil {
		return nil, err
	}
	params, err := paramsOf(&wire.Start{Params: in.Body.Params})
	if err != nil {
		return nil, err
	}
	f, err := h.catalog.flowBy(ctx, "body.flow", in.Body.Flow)
	if err != nil {
		return nil, err
	}
	if err := h.checkParams(ctx, f, params); err != nil {
		return nil, err
	}
	set, created, err := persistence.SetSchedule(ctx, h.store,
		persistence.ScheduleChange{Name: in.Schedule, FlowID: f.ID, Spec: spec, Params: params,
			Labels: in.Body.Labels, Enabled: in.Body.Enabled, Now: h.engine.Now().UnixMilli()})
	if err != nil {
		return nil, scheduleProblem(err)
	}
	shown := wire.SetSchedule{Created: created}
	if rule, err := schedule.Read(set.Spec); err == nil {
		shown.Warnings, shown.Notes = rule.Warnings(), rule.Notes()
	}
	shown.Schedule, err = h.toSchedule(ctx, set)
	return &statusResponse[wire.SetSchedule]{statusOf(created), shown}, err
}

// checkParams rejects params that could not start a task of the flow's newest version.
func (h *scheduleHandler) checkParams(ctx context.Context, f *persistence.Flow, params []byte) error {
	v, err := h.catalog.findVersion(ctx, "body.flow", f, 0)
	if err != nil {
		return err
	}
	if err := h.starts.checkStart(ctx, flow.Start{Version: v.ID, Params: params}); err != nil {
		return startProblem(err, "body.params", nameOf(f))
	}
	return nil
}

// scheduleProblem returns the answer to an error of a schedule, with the parts that are wrong.
func scheduleProblem(err error) error {
	var faults schedule.Faults
	switch {
	case errors.As(err, &faults):
		return locateError("body."+faults[0].Field, errors.Join(flow.Errorf(flow.Invalid, "%s", faults[0].Msg), faults))
	case flow.ErrorKindOf(err) == flow.Invalid:
		return locateError("path.schedule", err)
	case api.Missing(err):
		return newNotFoundError("body.flow", "publish it first, or look for its name at /v1/flows",
			"the flow of the schedule is not there any more")
	}
	return err
}

func (h *scheduleHandler) deleteSchedule(ctx context.Context, in *SchedulePath) (*bodyResponse[wire.Schedule], error) {
	found, err := h.scheduleBy(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	if err := h.store.DeleteSchedule(ctx, found.ID); err != nil {
		return nil, err
	}
	return h.scheduleAnswer(ctx, found, nil)
}

func (h *scheduleHandler) enableSchedule(ctx context.Context, in *SchedulePath) (*bodyResponse[wire.Schedule], error) {
	return h.setEnabled(ctx, in.Schedule, true)
}

func (h *scheduleHandler) disableSchedule(ctx context.Context, in *SchedulePath) (*bodyResponse[wire.Schedule], error) {
	return h.setEnabled(ctx, in.Schedule, false)
}

func (h *scheduleHandler) setEnabled(ctx context.Context, name string, enabled bool) (*bodyResponse[wire.Schedule], error) {
	changed, err := persistence.EnableSchedule(ctx, h.store, name, enabled, h.engine.Now().UnixMilli())
	return h.scheduleAnswer(ctx, changed, noSchedule(name, err))
}

// mostSlots is the greatest number of slots in an answer.
const mostSlots = 1000

// Count selects how many slots are returned, and from which time.
type Count struct {
	Count int       `query:"count" minimum:"1" maximum:"1000" default:"10" doc:"how many at most"`
	From  time.Time `query:"from" doc:"slots then or later; absent = from now on"`
}

type nextSlotsInput struct {
	SchedulePath
	Count
}

func (h *scheduleHandler) nextSlots(ctx context.Context, in *nextSlotsInput) (*bodyResponse[wire.Slots], error) {
	found, err := h.scheduleBy(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	return h.previewSlots(found.Spec, &in.Count)
}

type previewInput struct {
	Count
	Body wire.ScheduleSpec
}

func (h *scheduleHandler) previewSchedule(_ context.Context, in *previewInput) (*bodyResponse[wire.Slots], error) {
	spec, err := toSpec(&in.Body)
	if err != nil {
		return nil, err
	}
	return h.previewSlots(spec, &in.Count)
}

func (h *scheduleHandler) previewSlots(spec schedule.Spec, in *Count) (*bodyResponse[wire.Slots], error) {
	rule, err := schedule.Read(spec)
	if err != nil {
		return nil, scheduleProblem(err)
	}
	from := in.From.UnixMilli()
	if in.From.IsZero() {
		from = h.engine.Now().UnixMilli()
	}
	slots := wire.Slots{Items: []wire.Slot{}, ClockChange: clockChange(rule, from-1)}
	for _, t := range rule.Preview(from-1, in.Count) {
		slots.Items = append(slots.Items, wire.Slot{Slot: wire.Millis(t.Slot), Local: t.Local, Notes: t.Notes})
	}
	return &bodyResponse[wire.Slots]{slots}, nil
}

func (h *scheduleHandler) toSchedule(ctx context.Context, p *persistence.Schedule) (wire.Schedule, error) {
	f, err := h.store.Flow(ctx, p.FlowID)
	if api.Missing(err) { // the flow is being deleted
		f, err = &persistence.Flow{ID: p.FlowID}, nil
	}
	if err != nil {
		return wire.Schedule{}, err
	}
	spec, state := p.Spec.OrDefault(), p.State
	shown := wire.Schedule{Name: p.Name, Flow: nameOf(f), Cron: spec.Cron,
		Every: formatMillis(spec.EveryMS), Timezone: cmp.Or(spec.Timezone, "UTC"), Enabled: p.Enabled,
		CatchUp: string(spec.CatchUp), Overlap: string(spec.Overlap),
		Jitter: formatMillis(spec.JitterMS), Start: wire.Millis(spec.StartAt), End: wire.Millis(spec.EndAt),
		Params: p.Params, Labels: p.Labels, Version: p.Version, Next: wire.Millis(p.NextSlot()), Waiting: wire.Millis(state.Queued),
		LastSlot: wire.Millis(state.LastSlot), LastTask: state.LastTask, Error: state.Error, Begun: state.Begun, Skipped: state.Skipped,
		CreatedAt: wire.Millis(p.CreatedAt), UpdatedAt: wire.Millis(p.UpdatedAt)}
	if rule, err := schedule.Read(spec); err == nil {
		shown.DST, shown.ClockChange = rule.DST(), clockChange(rule, h.engine.Now().UnixMilli())
	}
	return shown, nil
}

// clockChange returns the effect of the next clock change on the slots; nil if there is none.
func clockChange(rule *schedule.Rule, after int64) *wire.ClockChange {
	change, ok := rule.NextChange(after)
	if !ok {
		return nil
	}
	return &wire.ClockChange{At: wire.Millis(change.At), Before: change.Before, After: change.After, Note: change.Note}
}

// toSpec reads when a schedule fires. Its error names all faults.
func toSpec(w *wire.ScheduleSpec) (schedule.Spec, error) {
	s := schedule.Spec{Cron: w.Cron, Timezone: w.Timezone, DST: w.DST,
		CatchUp: schedule.CatchUp(w.CatchUp), Overlap: schedule.Overlap(w.Overlap)}
	var faults, others schedule.Faults
	var ok bool
	if s.EveryMS, ok = parseMillis(w.Every, "every", &faults); w.Every != "" && s.EveryMS == 0 {
		if ok {
			faults.Add("every", schedule.NoInterval)
		}
		// an interval was sent, although it is not valid
		s.EveryMS = schedule.MinEvery.Milliseconds()
	}
	s.JitterMS, _ = parseMillis(w.Jitter, "jitter", &faults)
	if !w.Start.IsZero() {
		s.StartAt = w.Start.UnixMilli()
	}
	if !w.End.IsZero() {
		s.EndAt = w.End.UnixMilli()
	}
	_, err := schedule.Read(s)
	errors.As(err, &others)
	for _, fault := range others {
		faults.Add(fault.Field, "%s", fault.Msg)
	}
	if len(faults) > 0 {
		return s, scheduleProblem(faults)
	}
	return s, nil
}

// parseMillis returns a duration in milliseconds; 0 for an empty text. For an invalid text it adds
// a fault of the field.
func parseMillis(text, field string, faults *schedule.Faults) (ms int64, ok bool) {
	if text == "" {
		return 0, true
	}
	d, err := duration.Parse(text)
	if err != nil {
		faults.Add(field, "%s: write for example 30s, 15m, 1h30m or 1d12h", err)
		return 0, false
	}
	return d.Milliseconds(), true
}

// formatMillis returns a duration as text; "" for none.
func formatMillis(ms int64) string {
	if ms == 0 {
		return ""
	}
	return (time.Duration(ms) * time.Millisecond).String()
}
