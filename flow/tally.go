package flow

// Tally is what a decision tells about a node to whoever counts. It says nothing that the events do
// not, but says it without the state at that moment, and once for all units of a step.
type Tally struct {
	Node  *PlanNode
	Scope string // of the task
	MS    int64  // from beginning to end, -1 = it did not begin; how long an attempt waited to be claimed
	N     int32  // units of what ended; attempts that are retried
	What  TallyKind
}

// TallyKind says what happened.
type TallyKind uint8

// What happens to a node.
const (
	TallyCompleted TallyKind = iota
	TallyFailed
	TallySkipped
	TallyRetried // attempts after the first one, or the whole step is tried again
	TallyClaimed // an attempt, for the first time
)

// tallyEvent notes what an event tells of its node. The state is the one after it.
func (d *decider) tallyEvent(e *Event) {
	switch {
	case e.Type == StepEnded:
		d.tallyEnd(e)
	case e.Type == AttemptsStarted && e.Attempt > 1:
		d.addTally(e, TallyRetried, e.Total, 0)
	case e.Type == AttemptClaimed:
		if _, u := d.s.findAttempt(e.Address()); u != nil && u.Live.Deliveries == 0 {
			d.addTally(e, TallyClaimed, 1, max(e.At-u.Live.StartedAt, 0))
		}
	}
}

func (d *decider) tallyEnd(e *Event) {
	began, units := d.s.visitStart(e)
	took := int64(-1)
	if began != 0 {
		took = max(e.At-began, 0)
	}
	what := TallyCompleted
	switch {
	case e.Status == string(StepSkipped):
		what = TallySkipped
	case e.Error != "" || e.Status == string(StepFailed):
		what = TallyFailed
	}
	d.addTally(e, what, units, took)
	if e.Attempt > 0 {
		d.addTally(e, TallyRetried, 1, 0)
	}
}

// visitStart is since when the visit that has just ended went on, 0 = it did not, and with how many
// units.
func (s *State) visitStart(e *Event) (since int64, units int) {
	sc := s.scopes[e.Scope]
	switch {
	case sc == nil || sc.Plan.Nodes[e.Node] == nil:
		return 0, 0
	case sc.Plan.Dag != nil:
		n := sc.nodeState(sc.Plan.Nodes[e.Node])
		return n.StartedAt, int(n.Units().Total)
	}
	p := sc.Past[e.Node]
	return p.StartedAt, int(p.Total)
}

func (d *decider) addTally(e *Event, what TallyKind, n int, ms int64) {
	sc := d.s.scopes[e.Scope]
	if sc == nil || sc.Plan.Nodes[e.Node] == nil {
		return
	}
	d.tallies = append(d.tallies, Tally{Node: sc.Plan.Nodes[e.Node], Scope: e.Scope, MS: ms, N: int32(n), What: what})
}
