package persistence

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// Library is the part of a store that publishing needs.
type Library interface {
	Flows
	Schedules
}

// mayBeScheduled returns an error if the schedule of a definition would replace one that was set by
// hand.
func (p *Publication) mayBeScheduled(ctx context.Context, store Library, d *definition.Definition) error {
	if d.Schedule == nil {
		return nil
	}
	found, err := store.Schedule(ctx, p.Slug)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("looking for the schedule of %s: %w", p.Slug, err)
	case found.Version == 0:
		return flow.Errorf(flow.Conflict, "the definition has a schedule, and there is one "+
			"named %s that was set by hand: delete that, or leave it out of the definition", p.Slug)
	}
	return nil
}

// applySchedule sets the flow's schedule to the one in the definition of a version, unless a later
// version has set the schedule already. A schedule set by hand stays.
func (p *Publication) applySchedule(ctx context.Context, store Library, v *Version, d *definition.Definition) error {
	if d.Schedule == nil {
		return p.removeSchedule(ctx, store, v)
	}
	spec, err := d.Schedule.Spec()
	if err == nil {
		_, _, err = SetSchedule(ctx, store, ScheduleChange{Name: p.Slug, FlowID: v.FlowID,
			Spec: spec, Params: d.Schedule.Params, Enabled: d.Schedule.Enabled, Now: p.Now,
			Version: v.Number, defined: true})
	}
	if err != nil && !errors.Is(err, errScheduled) {
		return fmt.Errorf("setting the schedule of %s: %w", p.Slug, err)
	}
	return nil
}

// removeSchedule deletes the schedule that an earlier version set.
func (p *Publication) removeSchedule(ctx context.Context, store Library, v *Version) error {
	made, err := store.Schedule(ctx, p.Slug)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err == nil && (made.FlowID != v.FlowID || made.Version == 0 || made.Version >= v.Number):
		return nil
	case err == nil:
		err = store.DeleteSchedule(ctx, made.ID)
	}
	if err != nil {
		return fmt.Errorf("deleting the schedule of %s: %w", p.Slug, err)
	}
	return nil
}
