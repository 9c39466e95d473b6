package flow

import "github.com/troupe-engine/troupe/flow/codec"

// Past summarizes the newest visit of a node in graph mode after its end. It allows to show the
// whole graph of a task without its history. A scope of dag mode has the same data in its nodes. It
// is small, because every step of every task leaves one.
type Past struct {
	StartedAt, EndedAt  int64
	Total, Done, Failed int32 // numbers of units
	Ended               PastState
	Why                 *PastWhy
}

// PastState is an index in pastStates.
type PastState byte

// PastWhy holds the fields that few visits need.
type PastWhy struct {
	Reason string
	Error  string // beginning of the error text; the journal has all of it
}

var pastStates = [...]StepStatus{StepCompleted, StepFailed, StepSkipped}

// maxPastText is the maximum number of bytes of an error kept in a Past.
const maxPastText = 200

// recordPast stores the summary of an ended visit.
func (sc *Scope) recordPast(st *Step, status StepStatus, reason, failed string, at int64) {
	if sc.Past == nil {
		sc.Past = map[string]Past{}
	}
	p := Past{StartedAt: st.EnteredAt, EndedAt: at, Total: int32(len(st.Units)), Done: int32(st.Done), Failed: int32(st.Failures)}
	for pastStates[p.Ended] != status && int(p.Ended) < len(pastStates)-1 {
		p.Ended++
	}
	if reason != "" || failed != "" {
		p.Why = &PastWhy{reason, truncateText(failed, maxPastText)}
	}
	sc.Past[st.Key] = p
}

// toDigest converts it to the form for users.
func (p *Past) toDigest(visit int) NodeDigest {
	d := NodeDigest{Status: pastStates[p.Ended], Visit: visit, StartedAt: p.StartedAt, EndedAt: p.EndedAt,
		Units: UnitCount{Total: int(p.Total), Done: int(p.Done), Failed: int(p.Failed)}}
	if p.Why != nil {
		d.Reason, d.Error = p.Why.Reason, p.Why.Error
	}
	return d
}

func codePast(c *codec.Codec, p *Past) {
	c.Int64(&p.StartedAt)
	c.Int64(&p.EndedAt)
	for _, n := range []*int32{&p.Total, &p.Done, &p.Failed} {
		units := int(*n)
		c.Int(&units)
		*n = int32(units)
	}
	state := byte(p.Ended)
	if c.Byte(&state); int(state) >= len(pastStates) {
		state = 0
		c.Fail(codec.NoSuch)
	}
	p.Ended = PastState(state)
	codec.Pointer(c, &p.Why, func(c *codec.Codec, w *PastWhy) {
		codec.Text(c, &w.Reason)
		codec.Text(c, &w.Error)
	})
}
