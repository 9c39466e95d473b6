package compile

import (
	"errors"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
)

// checkSchedule checks the schedule of a flow, and whether tasks can start with its params.
func (c *checker) checkSchedule(s *definition.Schedule, at *definition.Place) {
	if s == nil {
		return
	}
	c.checkDuration(s.Every, at.Key("every"))
	c.checkDuration(s.Jitter, at.Key("jitter"))
	spec, unreadable := s.Spec()
	rule, err := schedule.Read(spec)
	c.scheduleFaults(unreadable, at)
	c.scheduleFaults(err, at)
	if err == nil {
		for _, warning := range rule.Warnings() {
			c.Warnf(at.Key("cron"), "%s", warning)
		}
		for _, note := range rule.Notes() {
			c.Notef(at.Key("cron"), "%s", note)
		}
	}
	if _, err := (flow.Start{Params: s.Params}).Fit(c.plan, c.limits); err != nil {
		c.Errorf(at.Key("params"), "no task could be started with them: %v", err)
	}
}

// scheduleFaults reports each fault of a schedule at its field.
func (c fieldChecker) scheduleFaults(err error, at *definition.Place) {
	var faults schedule.Faults
	errors.As(err, &faults)
	for _, fault := range faults {
		c.Errorf(at.Key(fault.Field), "%s", fault.Msg)
	}
}
