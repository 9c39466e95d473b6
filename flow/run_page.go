package flow

// RunPage is a part of a task's history: a number of runs from a place on, or the run of one
// attempt. It is a Walker.
type RunPage struct {
	History
	Places []Place // places of the runs
	More   bool    // there may be more runs after Next
	Next   Place

	after             Place
	onlyAttempt       Address // the only attempt of the page; no filter if its node is ""
	maxRuns, maxBytes int
	position          Place
	eventsRead        int // events read after the start of the page
	size              int // bytes of the runs so far
	full              bool
	// closing holds the steps that an attempt on the page will end. The end of the step determines
	// the action of the attempt's run.
	closing map[Address]bool
}

// NewRunPage returns a page of the runs after a place. The page has at most the given number of
// runs and bytes of inputs and outputs, but at least one run.
func NewRunPage(after Place, most, bytes int) *RunPage {
	return &RunPage{after: after, maxRuns: most, maxBytes: bytes}
}

// NewRunOf returns a page with the run of one attempt.
func NewRunOf(a Address) *RunPage { return &RunPage{onlyAttempt: a, maxRuns: 1} }

// From starts or continues with a state, and updates the attempts in flight from that state.
func (p *RunPage) From(s *State) {
	p.State, p.page = s, p
	if p.live == nil {
		p.live, p.closing = map[Address]int{}, map[Address]bool{}
	}
	for a, i := range p.live {
		if _, u := s.findAttempt(a); u != nil {
			r := &p.Runs[i]
			r.Worker, r.Note, r.ClaimedAt, r.Lost = u.Live.Worker, u.Live.Note, u.Live.ClaimedAt, u.Live.Deliveries
		}
	}
}

// Apply applies an event.
func (p *RunPage) Apply(e *Event, at Place) {
	if at.Compare(p.after) > 0 && !p.full && p.onlyAttempt.Node == "" {
		if p.eventsRead++; p.eventsRead > maxEventsRead {
			p.endAt(at.beforeEvent())
		}
	}
	p.position = at.beforeEvent()
	p.History.Apply(e)
	switch e.Type {
	case StepEnded, StepRecorded:
		delete(p.closing, e.stepAddress())
	case ScopeRetried, TaskClosing, TaskRetried, TaskEnded:
		clear(p.closing) // interrupted steps do not end
	}
}

// endAt ends the page at a place.
func (p *RunPage) endAt(next Place) { p.full, p.More, p.Next = true, true, next }

// admitRun reports whether a run that begins now is part of the page, and records its place.
func (p *RunPage) admitRun(a Address) bool {
	if p == nil {
		return true
	}
	p.position.Beginning++
	switch {
	case p.full || p.position.Compare(p.after) <= 0 || p.onlyAttempt.Node != "" && a != p.onlyAttempt:
		return false
	case len(p.Runs) == p.maxRuns:
		p.endAt(p.Places[len(p.Places)-1])
		return false
	}
	p.Places = append(p.Places, p.position)
	return true
}

// canContain reports whether a run may be part of the page.
func (p *RunPage) canContain(a Address) bool {
	return p == nil || !p.full && (p.onlyAttempt.Node == "" || a == p.onlyAttempt)
}

// noteCanceled records that an attempt on the page was canceled.
func (p *RunPage) noteCanceled() {
	if p != nil && p.onlyAttempt.Node != "" {
		p.full = true
	}
}

// noteComplete records that a run is complete, except for the action of its step.
func (p *RunPage) noteComplete(r *NodeRun) {
	if p == nil {
		return
	}
	if r.Kind == RunAttempt && r.Node.Single && r.RetryAt == 0 {
		p.closing[r.stepAddress()] = true
	}
	p.size += len(r.Input) + len(r.Output) + len(r.Details) + len(r.Metrics)
	p.full = p.full || p.onlyAttempt.Node != ""
	if p.onlyAttempt.Node == "" && p.size > p.maxBytes {
		p.dropExcess()
	}
}

// stepAddress returns the address of the step of a run.
func (r *NodeRun) stepAddress() Address {
	return Address{Scope: r.Scope, Node: r.Address.Node, Visit: r.Visit}
}

// dropExcess removes the runs that exceed the page's limit of bytes. The sizes are only known after
// all runs were read.
func (p *RunPage) dropExcess() {
	keep, size := 0, 0
	for ; keep < len(p.Runs); keep++ {
		size += len(p.Runs[keep].Input) + len(p.Runs[keep].Output) + len(p.Runs[keep].Details) + len(p.Runs[keep].Metrics)
		if size > p.maxBytes && keep > 0 {
			break
		}
	}
	if keep == len(p.Runs) {
		return
	}
	clear(p.Runs[keep:])
	p.Runs, p.Places, p.size = p.Runs[:keep], p.Places[:keep], size
	for a, i := range p.live {
		if i >= keep {
			delete(p.live, a)
		}
	}
	p.endAt(p.Places[keep-1])
}

// Busy reports whether the page needs every run that begins.
func (p *RunPage) Busy() bool { return !p.full && p.onlyAttempt.Node == "" }

// Idle reports whether no further run of the page begins or ends before the later state.
func (p *RunPage) Idle(later *State) bool {
	if !p.full && (p.onlyAttempt.Node == "" || len(p.Runs) == 0 && later.viewPart().hasBegun(p.onlyAttempt)) {
		return false
	}
	if len(p.live)+len(p.closing) > 0 && later.Status.Ended() {
		return false // attempts in flight end with the task
	}
	for a := range p.live {
		if _, u := later.findAttempt(a); u == nil {
			return false
		}
	}
	for a := range p.closing {
		if later.activeStep(a) == nil {
			return false
		}
	}
	return true
}

// Done reports whether the page has all its runs and all of them have ended.
func (p *RunPage) Done() bool { return p.full && len(p.live) == 0 && len(p.closing) == 0 }
