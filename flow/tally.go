package flow

// Tally is the data of a decision about a node, for statistics. The events contain the same data,
// but a Tally needs no state to evaluate, and covers all units of a step at once.
type Tally struct {
	Node  *PlanNode
	Scope string // scope within the task
	// MS is the duration of a step, or -1 if the step did not begin. For a claim it is how long the
	// attempt waited.
	MS   int64
	N    int32 // units of an ended step, or number of retried attempts
	What TallyKind
}

// TallyKind is the kind of a Tally.
type TallyKind uint8

// Values of TallyKind.
const (
	TallyCompleted TallyKind = iota
	TallyFailed
	TallySkipped
	TallyRetried // attempts are retried, or the whole step is
	TallyClaimed // first claim of an attempt
)

// tallyEvent records the tallies of an event. The state must include the event.
func (d tallyDecider) tallyEvent(e *Event) {
	switch {
	case e.Type == StepEnded:
		d.tallyEnd(e)
	case e.Type == AttemptsDispatched && e.Attempt > 1:
		d.addTally(e, TallyRetried, e.Total, 0)
	case e.Type == AttemptClaimed:
		if _, u := d.s.findAttempt(e.Address()); u != nil && u.Live.Deliveries == 0 {
			d.addTally(e, TallyClaimed, 1, max(e.At-u.Live.StartedAt, 0))
		}
	}
}

func (d tallyDecider) tallyEnd(e *Event) {
	began, units := d.s.viewPart().visitStart(e)
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

// visitStart returns when the ended visit began (0 if it did not begin), and its number of units.
func (s viewState) visitStart(e *Event) (since int64, units int) {
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

func (d tallyDecider) addTally(e *Event, what TallyKind, n int, ms int64) {
	sc := d.s.scopes[e.Scope]
	if sc == nil || sc.Plan.Nodes[e.Node] == nil {
		return
	}
	d.tallies = append(d.tallies, Tally{Node: sc.Plan.Nodes[e.Node], Scope: e.Scope, MS: ms, N: int32(n), What: what})
}
