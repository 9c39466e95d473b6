package persistence

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
)

// Schedules stores the schedules that start tasks by the clock. The store alone does not guarantee
// one task per slot. The scheduler first writes its decision (Schedule.State) at the revision that
// it read. The task then gets an idempotency key from that decision.
type Schedules interface {
	// PutSchedule writes a schedule. Revision is the one that was read, or 0 for a new schedule,
	// and grows by one. It returns ErrDuplicate if the name or id is in use, ErrStale after a
	// concurrent change, and ErrNotFound if the flow does not exist.
	PutSchedule(ctx context.Context, s Schedule) error
	// returns ErrNotFound if there is no such schedule
	Schedule(ctx context.Context, name string) (*Schedule, error)
	ListSchedules(ctx context.Context, f ScheduleFilter) ([]Schedule, error)
	// DueSchedules returns the schedules of the given shards that are due by a time, earliest
	// first.
	DueSchedules(ctx context.Context, shards ShardSet, by int64, limit int) ([]Schedule, error)
	DeleteSchedule(ctx context.Context, id string) error // returns nil for an unknown id
}

// Schedule starts tasks of a flow by the clock.
type Schedule struct {
	ID       string `json:"-"` // its shard decides which member runs the schedule
	Name     string `json:"-"` // name for display
	FlowID   string `json:"-"`
	Revision int64  `json:"-"`
	Due      int64  `json:"-"` // time of the next check; 0 means never

	Spec   schedule.Spec   `json:"spec"`
	Params json.RawMessage `json:"params,omitempty"` // params of the started tasks
	// labels of the started tasks, in addition to the labels for their origin
	Labels  map[string]string `json:"labels,omitempty"`
	Enabled bool              `json:"enabled"`
	// Version is the number of the flow version whose definition contains this schedule; 0 if it
	// was set by hand.
	Version   int            `json:"version,omitempty"`
	State     schedule.State `json:"state"`
	CreatedAt int64          `json:"created_at"`
	UpdatedAt int64          `json:"updated_at"` // time of the last edit; starting tasks is no edit
}

// ScheduleFilter selects schedules, in order of their names. Zero fields do not filter.
type ScheduleFilter struct {
	FlowID string
	After  string // only names after this one
	Limit  int
}

// scheduleForm is the form of a schedule name.
var scheduleForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// CheckScheduleName returns an error if the text is not a valid schedule name.
func CheckScheduleName(name string) error {
	if !scheduleForm.MatchString(name) {
		return flow.Errorf(flow.Invalid, "%.140q is no name for a schedule: it begins with a "+
			"letter or digit and has up to 128 of a-z, A-Z, 0-9, '.', '_' and '-'", name)
	}
	return nil
}

// ScheduleChange is the new content of a schedule.
type ScheduleChange struct {
	Name, FlowID string
	Spec         schedule.Spec
	Params       json.RawMessage
	Labels       map[string]string
	Enabled      *bool // nil means unchanged; a new schedule is enabled
	Now          int64
	// Version is the number of the flow's newest version if the schedule belongs to the definition.
	// Such a schedule is named after the slug, and later versions replace its times. 0 means that
	// it is set by hand.
	Version int
	defined bool // the definition of Version contains the schedule
}

// scheduleTries is how often a change is tried while the same schedule is changed concurrently.
const scheduleTries = 20

// SetSchedule creates a schedule or replaces all of it except its past decisions. A schedule with
// new times or for another flow does not catch up on slots before now. An unusable spec returns
// schedule.Faults.
func SetSchedule(ctx context.Context, store Schedules, c ScheduleChange) (set *Schedule, created bool, err error) {
	if c.Version == 0 {
		if err := CheckScheduleName(c.Name); err != nil {
			return nil, false, err
		}
	}
	c.Spec = c.Spec.OrDefault()
	if _, err := schedule.Read(c.Spec); err != nil {
		return nil, false, err
	}
	set, err = changeSchedule(ctx, store, c.Name, func(s *Schedule) error {
		created = s.Revision == 0
		return c.applyChange(s)
	})
	return set, created, err
}

// errScheduled reports that this or a later version of the flow has set the schedule already.
var errScheduled = errors.New("persistence: the schedule is that of this version, or of a later one")

// checkChange returns an error if the change conflicts with the stored schedule.
func (c *ScheduleChange) checkChange(s *Schedule) error {
	switch {
	case s.Revision == 0:
	case c.Version == 0 && s.Version != 0 && s.FlowID != c.FlowID:
		return flow.Errorf(flow.Conflict, "the schedule %s is made by the definition of its "+
			"flow, so it cannot be another flow's: choose another name", s.Name)
	case c.Version != 0 && (s.Version == 0 || s.FlowID != c.FlowID):
		return flow.Errorf(flow.Conflict, "the schedule %s was set by hand, or is another "+
			"flow's: delete it, or leave it out of the definition", s.Name)
	case c.defined && s.Version >= c.Version:
		return errScheduled
	}
	return nil
}

func (c *ScheduleChange) applyChange(s *Schedule) error {
	if err := c.checkChange(s); err != nil {
		return err
	}
	if s.Revision == 0 {
		*s = Schedule{ID: "schedule-" + uuid.Must(uuid.NewV7()).String(), Name: c.Name, FlowID: c.FlowID, Enabled: true, CreatedAt: c.Now}
	}
	if !s.Spec.SameTimes(c.Spec) || s.FlowID != c.FlowID {
		s.resetState(c.Now)
	}
	s.FlowID, s.Spec, s.Params, s.Labels, s.UpdatedAt = c.FlowID, c.Spec, c.Params, c.Labels, c.Now
	s.Version = max(s.Version, c.Version)
	if c.Enabled != nil {
		s.setEnabled(*c.Enabled, c.Now)
	}
	return nil
}

// resetState drops all slots that were due.
func (s *Schedule) resetState(now int64) {
	s.State.After, s.State.Starts, s.State.Queued, s.State.Error = now, nil, 0, ""
}

func (s *Schedule) setEnabled(enabled bool, now int64) {
	if enabled != s.Enabled {
		s.resetState(now)
	}
	s.Enabled = enabled
}

// Look sets Due to the time of the next check.
func (s *Schedule) Look() error {
	s.Due = 0
	if !s.Enabled {
		return nil
	}
	rule, err := schedule.Read(s.Spec)
	if err != nil {
		return flow.Errorf(flow.Invalid, "the schedule %s cannot be read: %v", s.Name, err)
	}
	s.Due = rule.Looks(s.ID, s.State)
	return nil
}

// NextSlot returns the time of the first slot after State.After. It returns 0 if there is none, the
// schedule is disabled, or its spec cannot be read.
func (s *Schedule) NextSlot() int64 {
	rule, err := schedule.Read(s.Spec)
	if err != nil || !s.Enabled {
		return 0
	}
	if slot, ok := rule.Next(s.State.After); ok {
		return slot
	}
	return 0
}

// EnableSchedule enables or disables a schedule, or returns ErrNotFound. Slots that passed while
// the schedule was disabled are not caught up.
func EnableSchedule(ctx context.Context, store Schedules, name string, enabled bool, now int64) (*Schedule, error) {
	return changeSchedule(ctx, store, name, func(s *Schedule) error {
		if s.Revision == 0 {
			return ErrNotFound
		}
		if s.Enabled != enabled {
			s.UpdatedAt = now
		}
		s.setEnabled(enabled, now)
		return nil
	})
}

// changeSchedule reads a schedule, changes it and writes it, and retries after a concurrent change.
// A schedule that does not exist has Revision 0.
func changeSchedule(ctx context.Context, store Schedules, name string, change func(*Schedule) error) (*Schedule, error) {
	for range scheduleTries {
		s, err := store.Schedule(ctx, name)
		if errors.Is(err, ErrNotFound) {
			s, err = &Schedule{Name: name}, nil
		}
		if err != nil {
			return nil, err
		}
		if err := change(s); err != nil {
			return nil, err
		}
		if err := s.Look(); err != nil {
			return nil, err
		}
		err = store.PutSchedule(ctx, *s)
		if err == nil {
			s.Revision++
			return s, nil
		}
		if !errors.Is(err, ErrStale) && !errors.Is(err, ErrDuplicate) {
			return nil, err
		}
	}
	return nil, flow.Errorf(flow.Busy, "the schedule %s is being changed by many at once: try again", name)
}
