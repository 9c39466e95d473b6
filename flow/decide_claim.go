package flow

import "cmp"

func (d *decider) claim(c Claim) error {
	st, u := d.attempt(c.Address)
	if u == nil || st.exec(c.Unit).Type != ExecQueue {
		return ErrOver
	}
	switch {
	case u.Live.Worker != "" && c.Token != "" && c.Token == u.Live.Token:
		return nil // it is this claim that has it
	case u.Live.Worker != "":
		return Errorf(Conflict, "the job is claimed by another worker")
	}
	e := Event{Type: AttemptClaimed, Scope: c.Scope, Node: c.Node, Visit: c.Visit, Unit: c.Unit, Attempt: c.Attempt,
		Worker: cmp.Or(text(c.Worker, MaxName), "anonymous"), Token: text(c.Token, MaxName), Until: d.until(st, c.Unit, c.Until)}
	if st.Node.TimeoutMS > 0 && st.Node.Exec.FromClaim {
		e.Due = d.in(st.Node.TimeoutMS)
	}
	d.emit(e)
	return nil
}

// extend prolongs a claim. It is written down only when that gains a good part of the claim's time,
// so frequent heartbeats cost nothing.
func (d *decider) extend(c Extend) error {
	st, u := d.attempt(c.Address)
	if u == nil || u.Live.Worker == "" {
		return ErrOver
	}
	if c.Token != "" && c.Token != u.Live.Token || c.Token == "" && c.Worker != "" && c.Worker != u.Live.Worker {
		return Errorf(Conflict, "the job is claimed by another worker")
	}
	until := d.until(st, c.Unit, c.Until)
	if c.MS > 0 {
		until = d.in(c.MS)
	}
	if gain := until - u.Live.Until; gain*2 >= until-d.env.Now {
		d.emit(Event{Type: AttemptExtended, Scope: c.Scope, Node: c.Node, Visit: c.Visit, Unit: c.Unit, Attempt: c.Attempt, Until: until})
	}
	return nil
}

// until is how long a claim holds: the node's own visibility before what the claim asks for.
func (d *decider) until(st *Step, unit int, asked int64) int64 {
	x := st.exec(unit)
	if ms := max(x.VisibilityMS, x.HeartbeatMS); ms > 0 {
		return d.in(ms)
	}
	return asked
}

func (d *decider) note(c Note) error {
	_, u := d.attempt(c.Address)
	if u == nil || u.Live.Note == c.Text {
		return nil
	}
	if len(c.Text) > MaxName {
		return Errorf(Invalid, "status has %d bytes, more than the limit of %d", len(c.Text), MaxName)
	}
	d.emit(Event{Type: AttemptNoted, Scope: c.Scope, Node: c.Node, Visit: c.Visit, Unit: c.Unit, Attempt: c.Attempt, Note: text(c.Text, MaxName)})
	return nil
}

func (d *decider) noteBegun(a Address) error {
	st, u := d.attempt(a)
	if u == nil || u.Live.Carrier == "" || u.Live.Carrier != d.env.Member {
		return ErrOver
	}
	if u.Status != UnitRunning {
		e := st.event(AttemptBegun)
		e.Unit, e.Attempt = a.Unit, a.Attempt
		d.emit(e)
	}
	return nil
}

// giveBack returns a claimed attempt. Nobody worked on it, so that is no delivery in vain.
func (d *decider) giveBack(c GiveBack) {
	if st, u := d.attempt(c.Address); u != nil && u.Live.Worker != "" && u.Live.Token == c.Token {
		d.again(st, c.Address, "", u.Live.Deliveries)
	}
}
