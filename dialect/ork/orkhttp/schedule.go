package orkhttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

// workflowSchedule is the schedule of a workflow. It has the workflow's name.
type workflowSchedule struct {
	Schedule *string    `json:"schedule"`
	Timezone *string    `json:"schedule_timezone"`
	Enabled  bool       `json:"schedule_enabled"`
	Next     *wire.Time `json:"next_scheduled_at"`
}

func timedBy(s *persistence.Schedule) workflowSchedule {
	if s == nil {
		return workflowSchedule{}
	}
	cron := s.Spec.Cron
	if cron == "" {
		cron = "@every " + flow.Milliseconds(s.Spec.EveryMS).String()
	}
	return workflowSchedule{textOrNull(cron), textOrNull(s.Spec.Timezone), s.Enabled, timeOrNull(s.NextSlot())}
}

// scheduleOf returns the schedule of a workflow, or nil if the workflow has no schedule.
func (d *dialect) scheduleOf(ctx context.Context, f *persistence.Flow) (*persistence.Schedule, error) {
	s, err := d.Store.Schedule(ctx, f.Slug)
	switch {
	case api.Missing(err):
		return nil, nil
	case err != nil:
		return nil, err
	case s.FlowID != f.ID:
		return nil, nil
	}
	return s, nil
}

// schedulePatch is a change of a schedule. Absent fields stay unchanged; a null schedule is
// deleted.
type schedulePatch struct {
	Schedule json.RawMessage `json:"schedule"`
	Enabled  *bool           `json:"enabled"`
}

// patchSchedule changes the schedule of a workflow until the workflow is replaced.
func (d *dialect) patchSchedule(w http.ResponseWriter, r *http.Request) error {
	var q schedulePatch
	if err := decodeBody(r, &q); err != nil {
		return err
	}
	f, err := d.findFlow(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	answer := struct {
		Name string `json:"name"`
		workflowSchedule
		Warning string `json:"warning,omitempty"`
	}{Name: f.Slug}
	s, err := d.changeSchedule(r.Context(), f, &q)
	if err != nil {
		return err
	}
	answer.workflowSchedule = timedBy(s)
	if s != nil {
		if rule, err := schedule.Read(s.Spec); err == nil {
			answer.Warning = strings.Join(append(rule.Warnings(), rule.Notes()...), "; ")
		}
	}
	api.WriteJSON(w, http.StatusOK, answer)
	return nil
}

func (d *dialect) changeSchedule(ctx context.Context, f *persistence.Flow, q *schedulePatch) (*persistence.Schedule, error) {
	found, err := d.scheduleOf(ctx, f)
	if err != nil {
		return nil, err
	}
	cron, isText := expr.String(q.Schedule)
	switch {
	case string(q.Schedule) == "null" && found == nil:
		return nil, nil
	case string(q.Schedule) == "null":
		return nil, d.Store.DeleteSchedule(ctx, found.ID)
	case q.Schedule != nil && !isText:
		return nil, badSchedule("must be a cron expression such as 30 2 * * *, or null for none, is %s", expr.KindOf(q.Schedule))
	case q.Schedule == nil && q.Enabled == nil:
		return nil, flow.Errorf(flow.Invalid, "nothing is to change: send schedule, enabled or both")
	case q.Schedule == nil && found == nil:
		return nil, badSchedule("the workflow has none that could be enabled or disabled: send schedule, too")
	}
	v, err := d.Store.FindVersion(ctx, f.ID, 0)
	if err != nil {
		return nil, err
	}
	c := persistence.ScheduleChange{Name: f.Slug, FlowID: f.ID, Version: v.Number, Enabled: q.Enabled, Now: d.Engine.Now().UnixMilli()}
	if found != nil {
		c.Spec, c.Params, c.Labels = found.Spec, found.Params, found.Labels
		if found.Version == 0 {
			c.Version = 0 // the schedule was set by hand and stays so
		}
	}
	if isText {
		c.Spec.Cron, c.Spec.EveryMS = cron, 0
		if c.Spec.OrDefault().Cron == "" {
			c.Spec.DST = "" // dst applies only to expressions
		}
	}
	set, _, err := persistence.SetSchedule(ctx, d.Store, c)
	var fault *schedule.Fault
	if errors.As(err, &fault) {
		return nil, badSchedule("%s", fault.Msg)
	}
	return set, err
}

func badSchedule(format string, args ...any) error {
	r := &definition.Reporter{}
	r.Errorf(definition.At("schedule"), format, args...)
	return r.All()
}
