package flow

// RunPage is a part of a task's history: so many of its runs, from a place on, or the one of an attempt. It is a
// Walker.
type RunPage struct {
	History
	Places []Place // of the runs
	More   bool    // there may be others behind Next
	Next   Place

	after       Place
	only        Address // the attempt that is meant; none if its node is ""
	most, bytes int
	at          Place
	looked      int // events behind after
	size        int // of the runs so far
	full        bool
	closing     map[Address]bool // steps that an attempt on the page will end; that tells its action
}

// NewRunPage is for the runs behind a place: so many, and so many bytes of inputs and outputs, but one at least.
func NewRunPage(after Place, most, bytes int) *RunPage {
	return &RunPage{after: after, most: most, bytes: bytes}
}

// NewRunOf is for the run of an attempt.
func NewRunOf(a Address) *RunPage { return &RunPage{only: a, most: 1} }

// From begins, or goes on, with a state. Of attempts in flight it tells what has happened to them meanwhile.
func (p *RunPage) From(s *State) {
	p.State, p.page = s, p
	if p.live == nil {
		p.live, p.closing = map[Address]int{}, map[Address]bool{}
	}
	for a, i := range p.live {
		if _, u := s.attempt(a); u != nil {
			r := &p.Runs[i]
			r.Worker, r.Note, r.ClaimedAt, r.Lost = u.Live.Worker, u.Live.Note, u.Live.ClaimedAt, u.Live.Deliveries
		}
	}
}

// Apply adds an event.
func (p *RunPage) Apply(e *Event, at Place) {
	if at.Compare(p.after) > 0 && !p.full && p.only.Node == "" {
		if p.looked++; p.looked > maxLook {
			p.endAt(at.before())
		}
	}
	p.at = at.before()
	p.History.Apply(e)
	switch e.Type {
	case StepEnded:
		delete(p.closing, e.stepAddress())
	case ScopeRetried, TaskClosing, TaskRetried, TaskEnded:
		clear(p.closing) // what is cut short does not end
	}
}

// endAt says that the page ends at a place.
func (p *RunPage) endAt(next Place) { p.full, p.More, p.Next = true, true, next }

// wants says whether a run that begins now is part of the page, and keeps its place.
func (p *RunPage) wants(a Address) bool {
	if p == nil {
		return true
	}
	p.at.Beginning++
	switch {
	case p.full || p.at.Compare(p.after) <= 0 || p.only.Node != "" && a != p.only:
		return false
	case len(p.Runs) == p.most:
		p.endAt(p.Places[len(p.Places)-1])
		return false
	}
	p.Places = append(p.Places, p.at)
	return true
}

// open says whether a run may be part of the page.
func (p *RunPage) open(a Address) bool {
	return p == nil || !p.full && (p.only.Node == "" || a == p.only)
}

// canceled notes that an attempt on the page was given up.
func (p *RunPage) canceled() {
	if p != nil && p.only.Node != "" {
		p.full = true
	}
}

// told notes that a run has all it will have, but for the action that its step ends with.
func (p *RunPage) told(r *NodeRun) {
	if p == nil {
		return
	}
	if r.Kind == RunAttempt && r.Node.Single && r.RetryAt == 0 {
		p.closing[r.step()] = true
	}
	p.size += len(r.Input) + len(r.Output) + len(r.Details) + len(r.Metrics)
	p.full = p.full || p.only.Node != ""
	if p.only.Node == "" && p.size > p.bytes {
		p.shorten()
	}
}

// step is the one that a run belongs to.
func (r *NodeRun) step() Address {
	return Address{Scope: r.Scope, Node: r.Address.Node, Visit: r.Visit}
}

// shorten drops what is too much for the page, now that it is known how large its runs are.
func (p *RunPage) shorten() {
	keep, size := 0, 0
	for ; keep < len(p.Runs); keep++ {
		size += len(p.Runs[keep].Input) + len(p.Runs[keep].Output) + len(p.Runs[keep].Details) + len(p.Runs[keep].Metrics)
		if size > p.bytes && keep > 0 {
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

// Busy says that every run that begins is wanted.
func (p *RunPage) Busy() bool { return !p.full && p.only.Node == "" }

// Idle says that no run begins that is wanted, and none of the page ends.
func (p *RunPage) Idle(later *State) bool {
	if !p.full && (p.only.Node == "" || len(p.Runs) == 0 && later.begun(p.only)) {
		return false
	}
	if len(p.live)+len(p.closing) > 0 && later.Status.Ended() {
		return false // what is in flight ends with the task
	}
	for a := range p.live {
		if _, u := later.attempt(a); u == nil {
			return false
		}
	}
	for a := range p.closing {
		if later.step(a) == nil {
			return false
		}
	}
	return true
}

// Done says that the runs of the page are all there and over.
func (p *RunPage) Done() bool { return p.full && len(p.live) == 0 && len(p.closing) == 0 }
