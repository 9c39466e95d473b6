// Package schedules serves the schedules of /v1: settings, slots, triggers and backfills.
package schedules

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/tasks"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/duration"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

// Handler serves schedules.
type Handler struct {
	Catalog *catalog.Flows
	Starts  *tasks.StartHandler

	Store  api.Store
	Engine engine.Engine
}

// AddRoutes adds the routes of the handler.
func (h *Handler) AddRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-schedules", Method: http.MethodGet, Path: "/v1/schedules", Tag: "schedules",
		Summary: "List schedules",
		Text:    "In order of name."}, h.listSchedules)
	route.Register(rt, route.Operation{ID: "get-schedule", Method: http.MethodGet, Path: "/v1/schedules/{schedule}", Tag: "schedules",
		Summary: "Get a schedule"}, h.getSchedule)
	route.Register(rt, route.Operation{ID: "set-schedule", Method: http.MethodPut,
		Path: "/v1/schedules/{schedule}", Tag: "schedules", Created: true,
		Summary: "Create or change a schedule",
		Text: "Each slot starts one task, whatever happens to members. If the times change, slots " +
			"before the change are not caught up. A schedule from a definition stays changed " +
			"until the next version of its flow is published."}, h.setSchedule)
	route.Register(rt, route.Operation{ID: "delete-schedule", Method: http.MethodDelete, Path: "/v1/schedules/{schedule}", Tag: "schedules",
		Summary: "Delete a schedule",
		Text:    "Its tasks are unchanged."}, h.deleteSchedule)
	route.Register(rt, route.Operation{ID: "enable-schedule", Method: http.MethodPost,
		Path: "/v1/schedules/{schedule}/enable", Tag: "schedules",
		Summary: "Enable a schedule",
		Text:    "Slots that passed while it was disabled are not caught up."}, h.enableSchedule)
	route.Register(rt, route.Operation{ID: "disable-schedule", Method: http.MethodPost,
		Path: "/v1/schedules/{schedule}/disable", Tag: "schedules",
		Summary: "Disable a schedule",
		Text:    "Its tasks continue."}, h.disableSchedule)
	route.Register(rt, route.Operation{ID: "next-slots", Method: http.MethodGet, Path: "/v1/schedules/{schedule}/next", Tag: "schedules",
		Summary: "List the next slots of a schedule",
		Text: "Also for a disabled schedule. Notes explain local times that do not exist or occur " +
			"twice."}, h.nextSlots)
	route.Register(rt, route.Operation{ID: "preview-schedule", Method: http.MethodPost, Path: "/v1/schedules-preview", Tag: "schedules",
		Summary: "Preview the slots of a schedule",
		Text:    "Nothing is stored."}, h.previewSchedule)
	route.Register(rt, route.Operation{ID: "trigger-schedule", Method: http.MethodPost,
		Path: "/v1/schedules/{schedule}/trigger", Tag: "schedules", Created: true,
		Summary: "Start a task of a schedule now",
		Text: "Regardless of its slots and policies, and also while it is disabled. Its slots are " +
			"unchanged."}, h.triggerSchedule)
	route.Register(rt, route.Operation{ID: "backfill-schedule", Method: http.MethodPost,
		Path: "/v1/schedules/{schedule}/backfill", Tag: "schedules",
		Summary: "Start tasks for past slots",
		Text: "A slot that had a task gets no other one. All tasks start at once, regardless of " +
			"overlap; a limit on the flow's concurrency delays them. The request can be sent " +
			"again."},
		h.backfillSchedule)
}

// SchedulePath identifies a schedule.
type SchedulePath struct {
	Schedule string `path:"schedule" maxLength:"128" doc:"Name of the schedule." example:"nightly"`
}

func (h *Handler) scheduleBy(ctx context.Context, name string) (*persistence.Schedule, error) {
	found, err := h.Store.Schedule(ctx, name)
	return found, noSchedule(name, err)
}

func noSchedule(name string, err error) error {
	if api.Missing(err) {
		return route.NewNotFoundError("path.schedule", "GET /v1/schedules lists them", "there is no schedule %.140q", name)
	}
	return err
}

type listSchedulesInput struct {
	route.Paging
	Flow string `query:"flow" maxLength:"128" doc:"Slug of the flow, or its ID."`
}

func (h *Handler) listSchedules(ctx context.Context, in *listSchedulesInput) (*route.Response[wire.Page[wire.Schedule]], error) {
	at, _, err := in.ParseCursor()
	if err != nil {
		return nil, err
	}
	filter := persistence.ScheduleFilter{After: at.Name, Limit: in.Limit + 1}
	if in.Flow != "" {
		f, err := h.Catalog.FindFlow(ctx, "query.flow", in.Flow)
		if err != nil {
			return nil, err
		}
		filter.FlowID = f.ID
	}
	list, err := h.Store.ListSchedules(ctx, filter)
	if err != nil {
		return nil, err
	}
	list, more := route.CutPage(list, in.Limit)
	page := wire.Page[wire.Schedule]{Items: make([]wire.Schedule, len(list))}
	for i := range list {
		if page.Items[i], err = h.toSchedule(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	if more {
		page.Next = route.Cursor{Name: list[len(list)-1].Name}.String()
	}
	return &route.Response[wire.Page[wire.Schedule]]{Body: page}, nil
}

func (h *Handler) getSchedule(ctx context.Context, in *SchedulePath) (*route.Response[wire.Schedule], error) {
	found, err := h.scheduleBy(ctx, in.Schedule)
	return h.scheduleAnswer(ctx, found, err)
}

func (h *Handler) scheduleAnswer(ctx context.Context, found *persistence.Schedule,
	err error) (*route.Response[wire.Schedule], error) {
	if err != nil {
		return nil, err
	}
	shown, err := h.toSchedule(ctx, found)
	return &route.Response[wire.Schedule]{Body: shown}, err
}

type setScheduleInput struct {
	SchedulePath
	Body wire.ScheduleSpec
}

func (h *Handler) setSchedule(ctx context.Context, in *setScheduleInput) (*route.StatusResponse[wire.ScheduleResult], error) {
	spec, err := toSpec(&in.Body)
	if err != nil {
		return nil, err
	}
	if err := tasks.CheckLabels(in.Body.Labels); err != nil {
		return nil, err
	}
	params, err := tasks.ReadParams(&wire.StartRequest{Params: in.Body.Params})
	if err != nil {
		return nil, err
	}
	f, err := h.Catalog.FindFlow(ctx, "body.flow", in.Body.Flow)
	if err != nil {
		return nil, err
	}
	if err := h.checkParams(ctx, f, params); err != nil {
		return nil, err
	}
	set, created, err := persistence.SetSchedule(ctx, h.Store,
		persistence.ScheduleChange{Name: in.Schedule, FlowID: f.ID, Spec: spec, Params: params,
			Labels: in.Body.Labels, Enabled: in.Body.Enabled, Now: h.Engine.Now().UnixMilli()})
	if err != nil {
		return nil, scheduleProblem(err)
	}
	shown := wire.ScheduleResult{Created: created}
	if rule, err := schedule.Read(set.Spec); err == nil {
		shown.Warnings, shown.Notes = rule.Warnings(), rule.Notes()
	}
	shown.Schedule, err = h.toSchedule(ctx, set)
	return &route.StatusResponse[wire.ScheduleResult]{Status: route.StatusOf(created), Body: shown}, err
}

// checkParams returns an error if params could not start a task of the flow's newest version.
func (h *Handler) checkParams(ctx context.Context, f *persistence.Flow, params []byte) error {
	v, err := h.Catalog.FindVersion(ctx, "body.flow", f, 0)
	if err != nil {
		return err
	}
	if err := h.Starts.CheckStart(ctx, flow.Start{Version: v.ID, Params: params}); err != nil {
		return tasks.ToStartProblem(err, "body.params", catalog.NameOf(f))
	}
	return nil
}

// scheduleProblem converts an error of a schedule to an answer with the faulty fields.
func scheduleProblem(err error) error {
	var faults schedule.Faults
	switch {
	case errors.As(err, &faults):
		return route.LocateError("body."+faults[0].Field, errors.Join(flow.Errorf(flow.Invalid, "%s", faults[0].Msg), faults))
	case flow.ErrorKindOf(err) == flow.Invalid:
		return route.LocateError("path.schedule", err)
	case api.Missing(err):
		return route.NewNotFoundError("body.flow", "publish it first, or look for its name at /v1/flows",
			"the flow of the schedule no longer exists")
	}
	return err
}

func (h *Handler) deleteSchedule(ctx context.Context, in *SchedulePath) (*route.Response[wire.Schedule], error) {
	found, err := h.scheduleBy(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	if err := h.Store.DeleteSchedule(ctx, found.ID); err != nil {
		return nil, err
	}
	return h.scheduleAnswer(ctx, found, nil)
}

func (h *Handler) enableSchedule(ctx context.Context, in *SchedulePath) (*route.Response[wire.Schedule], error) {
	return h.setEnabled(ctx, in.Schedule, true)
}

func (h *Handler) disableSchedule(ctx context.Context, in *SchedulePath) (*route.Response[wire.Schedule], error) {
	return h.setEnabled(ctx, in.Schedule, false)
}

func (h *Handler) setEnabled(ctx context.Context, name string, enabled bool) (*route.Response[wire.Schedule], error) {
	changed, err := persistence.EnableSchedule(ctx, h.Store, name, enabled, h.Engine.Now().UnixMilli())
	return h.scheduleAnswer(ctx, changed, noSchedule(name, err))
}

// mostSlots is the maximum number of slots in an answer.
const mostSlots = 1000

// Count selects the number of slots and their earliest time.
type Count struct {
	Count int       `query:"count" minimum:"1" maximum:"1000" default:"10" doc:"Maximum number of slots."`
	From  time.Time `query:"from" doc:"Earliest time of the slots; absent = now."`
}

type nextSlotsInput struct {
	SchedulePath
	Count
}

func (h *Handler) nextSlots(ctx context.Context, in *nextSlotsInput) (*route.Response[wire.Slots], error) {
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

func (h *Handler) previewSchedule(_ context.Context, in *previewInput) (*route.Response[wire.Slots], error) {
	spec, err := toSpec(&in.Body)
	if err != nil {
		return nil, err
	}
	return h.previewSlots(spec, &in.Count)
}

func (h *Handler) previewSlots(spec schedule.Spec, in *Count) (*route.Response[wire.Slots], error) {
	rule, err := schedule.Read(spec)
	if err != nil {
		return nil, scheduleProblem(err)
	}
	from := in.From.UnixMilli()
	if in.From.IsZero() {
		from = h.Engine.Now().UnixMilli()
	}
	slots := wire.Slots{Items: []wire.Slot{}, ClockChange: clockChange(rule, from-1)}
	for _, t := range rule.Preview(from-1, in.Count) {
		slots.Items = append(slots.Items, wire.Slot{Slot: wire.Millis(t.Slot), Local: t.Local, Notes: t.Notes})
	}
	return &route.Response[wire.Slots]{Body: slots}, nil
}

func (h *Handler) toSchedule(ctx context.Context, p *persistence.Schedule) (wire.Schedule, error) {
	f, err := h.Store.Flow(ctx, p.FlowID)
	if api.Missing(err) { // the flow is being deleted
		f, err = &persistence.Flow{ID: p.FlowID}, nil
	}
	if err != nil {
		return wire.Schedule{}, err
	}
	spec, state := p.Spec.OrDefault(), p.State
	shown := wire.Schedule{Name: p.Name, Flow: catalog.NameOf(f), Cron: spec.Cron,
		Every: formatMillis(spec.EveryMS), Timezone: cmp.Or(spec.Timezone, "UTC"), Enabled: p.Enabled,
		CatchUp: string(spec.CatchUp), Overlap: string(spec.Overlap),
		Jitter: formatMillis(spec.JitterMS), Start: wire.Millis(spec.StartAt), End: wire.Millis(spec.EndAt),
		Params: p.Params, Labels: p.Labels, Version: p.Version, NextAt: wire.Millis(p.NextSlot()), WaitingSlot: wire.Millis(state.Queued),
		LastSlot: wire.Millis(state.LastSlot), LastTask: state.LastTask, Error: state.Error,
		StartedCount: state.Begun, SkippedCount: state.Skipped,
		CreatedAt: wire.Millis(p.CreatedAt), UpdatedAt: wire.Millis(p.UpdatedAt)}
	if rule, err := schedule.Read(spec); err == nil {
		shown.DST, shown.ClockChange = rule.DST(), clockChange(rule, h.Engine.Now().UnixMilli())
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

// toSpec converts a request to a schedule spec. The error contains all faults.
func toSpec(w *wire.ScheduleSpec) (schedule.Spec, error) {
	s := schedule.Spec{Cron: w.Cron, Timezone: w.Timezone, DST: w.DST,
		CatchUp: schedule.CatchUp(w.CatchUp), Overlap: schedule.Overlap(w.Overlap)}
	var faults, others schedule.Faults
	var ok bool
	if s.EveryMS, ok = parseMillis(w.Every, "every", &faults); w.Every != "" && s.EveryMS == 0 {
		if ok {
			faults.Add("every", schedule.NoInterval)
		}
		// an interval was sent, but is invalid
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

// parseMillis returns a duration in milliseconds; 0 for an empty text. For an invalid text, it adds
// a fault for the field.
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

// formatMillis returns a duration as text; "" if ms is 0.
func formatMillis(ms int64) string {
	if ms == 0 {
		return ""
	}
	return (time.Duration(ms) * time.Millisecond).String()
}
