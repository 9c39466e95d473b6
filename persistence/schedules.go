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

// Schedules keeps when tasks are begun by the clock. That a slot has one task is not up to the
// store: what is decided about it is written first (Schedule.State), by whoever read the revision
// before, and its task has a key made of it.
type Schedules interface {
	// PutSchedule writes a schedule that was read with this Revision, which grows by one; 0 = a new
	// one. ErrDuplicate: there is a schedule of that name or id. ErrStale: it was changed since, or
	// deleted. ErrNotFound: there is no such flow.
	PutSchedule(ctx context.Context, s Schedule) error
	Schedule(ctx context.Context, name string) (*Schedule, error) // ErrNotFound
	ListSchedules(ctx context.Context, f ScheduleFilter) ([]Schedule, error)
	// DueSchedules lists those of shards that have to be looked at by a time, earliest first.
	DueSchedules(ctx context.Context, shards ShardSet, by int64, limit int) ([]Schedule, error)
	DeleteSchedule(ctx context.Context, id string) error // an unknown one is no error
}

// Schedule starts tasks of a flow by the clock.
type Schedule struct {
	ID       string `json:"-"` // its shard is that of the member who looks after it
	Name     string `json:"-"` // what people call it
	FlowID   string `json:"-"`
	Revision int64  `json:"-"`
	Due      int64  `json:"-"` // when it has to be looked at; 0 = never

	Spec    schedule.Spec     `json:"spec"`
	Params  json.RawMessage   `json:"params,omitempty"` // of its tasks
	Labels  map[string]string `json:"labels,omitempty"` // likewise, beside those that tell what started them
	Enabled bool              `json:"enabled"`
	// Version is the number of the flow's version whose definition says when it fires; 0 = somebody
	// set it by hand.
	Version   int            `json:"version,omitempty"`
	State     schedule.State `json:"state"`
	CreatedAt int64          `json:"created_at"`
	UpdatedAt int64          `json:"updated_at"` // when somebody changed it; that it fires is no change
}

// ScheduleFilter picks schedules, in order of their names. Zero fields do not filter.
type ScheduleFilter struct {
	FlowID string
	After  string // only those behind this name
	Limit  int
}

// scheduleForm is what a schedule may be called.
var scheduleForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// CheckScheduleName refuses what cannot be the name of a schedule.
func CheckScheduleName(name string) error {
	if !scheduleForm.MatchString(name) {
		return flow.Errorf(flow.Invalid, "%.140q is no name for a schedule: it begins with a letter or digit and has up to 128 of a-z, A-Z, 0-9, '.', '_' and '-'", name)
	}
	return nil
}

// ScheduleChange is what a schedule is to be like from now on.
type ScheduleChange struct {
	Name, FlowID string
	Spec         schedule.Spec
	Params       json.RawMessage
	Labels       map[string]string
	Enabled      *bool // nil = as it was; a new one is enabled
	Now          int64
	// Version is the number of the flow's newest version where the schedule is the flow's own: it
	// has the slug as its name, whatever that is, and later versions say anew when it fires. 0 =
	// somebody sets it by hand.
	Version int
	defined bool // that version's definition says it
}

// scheduleTries is how often a change is tried while others change the same schedule.
const scheduleTries = 20

// SetSchedule makes a schedule, or changes all of it but what it has decided. One that fires at
// other times, or for another flow, begins anew: no slot before now is caught up. The error of a
// spec that cannot be used is schedule.Faults.
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

// errScheduled: this version of the flow, or a later one, has said already when it fires.
var errScheduled = errors.New("persistence: the schedule is that of this version, or of a later one")

// checkChange reports whether the change may be made of what there is.
func (c *ScheduleChange) checkChange(s *Schedule) error {
	switch {
	case s.Revision == 0:
	case c.Version == 0 && s.Version != 0 && s.FlowID != c.FlowID:
		return flow.Errorf(flow.Conflict, "the schedule %s is made by the definition of its flow, so it cannot be another flow's: choose another name", s.Name)
	case c.Version != 0 && (s.Version == 0 || s.FlowID != c.FlowID):
		return flow.Errorf(flow.Conflict, "the schedule %s was set by hand, or is another flow's: delete it, or leave it out of the definition", s.Name)
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

// resetState leaves everything behind that was due.
func (s *Schedule) resetState(now int64) {
	s.State.After, s.State.Starts, s.State.Queued, s.State.Error = now, nil, 0, ""
}

func (s *Schedule) setEnabled(enabled bool, now int64) {
	if enabled != s.Enabled {
		s.resetState(now)
	}
	s.Enabled = enabled
}

// Look says when it has to be looked at next.
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

// NextSlot is the next one; 0 = there is none, or it does not fire.
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

// EnableSchedule has a schedule fire, or fire no longer. What was due while it did not is not
// caught up. ErrNotFound.
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

// changeSchedule reads a schedule, changes it and writes it, again when somebody else has changed
// it meanwhile. One that there is not has no revision.
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
