package flow

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// Contents knows what references stand for. A value that is large may be kept elsewhere; then a small one that no user can write stands in its
// place, which travels through a task like any other, and is opened only where a decision depends on what is in it. The same reference always has
// the same content, so whoever decides again decides the same.
type Contents interface {
	// Open is what a value stands for that is a reference; any other one is returned as it is.
	Open(v json.RawMessage) (json.RawMessage, error)
	// Whole is a value with what stands for its references in their places.
	Whole(v json.RawMessage) (json.RawMessage, error)
	// Size is how many bytes that has. Glimpse also tells how it begins, and what it has in common with equal ones and no others.
	Size(v json.RawMessage) int
	Glimpse(v json.RawMessage, most int) (size int, begin []byte, sum [sha256.Size]byte)
}

// ErrNoContent is what errors of Contents are when what a reference stands for is gone, or not what was written: asking again is of no use.
var ErrNoContent = errors.New("the content of a value is lost")

// SpoiledError says that a decision cannot be made because a content could not be had in the middle of it. The state is of no more use.
type SpoiledError struct{ Err error }

func (e *SpoiledError) Error() string { return e.Err.Error() }

func (e *SpoiledError) Unwrap() error { return e.Err }

// Keep has a plan know what the references of its tasks stand for. It is for whoever has just made the plan.
func (p *Plan) Keep(c Contents) {
	p.Root.keep(c)
	if p.Closing != nil {
		p.Closing.keep(c)
	}
}

func (g *PlanScope) keep(c Contents) {
	g.contents = c
	for _, n := range g.Nodes {
		if n.Sub != nil {
			n.Sub.keep(c)
		}
	}
}

// lost is the first content that could not be had while a state was made or decided about.
type lost struct{ err error }

func (l *lost) note(err error) {
	if l != nil && l.err == nil { // nobody asks one that is not there
		l.err = err
	}
}

func (l *lost) take() (err error) {
	if l != nil {
		err, l.err = l.err, nil
	}
	return err
}

// Lost is why the state is not what its events make of it: a content that they depend on could not be had. nil = it is.
func (s *State) Lost() error { return s.lost.err }

// orLost is an error, or else that of a content which could not be had for what was just looked at.
func (d *decider) orLost(err error) error {
	if lost := d.s.lost.take(); lost != nil {
		return lost
	}
	return err
}

// open is what a value stands for.
func (sc *Scope) open(v json.RawMessage) json.RawMessage {
	c := sc.Plan.contents
	if c == nil {
		return v
	}
	content, err := c.Open(v)
	if err != nil {
		sc.lost.note(err)
		return null
	}
	return content
}

// whole is a value with what its references stand for.
func (sc *Scope) whole(v json.RawMessage) json.RawMessage {
	c := sc.Plan.contents
	if c == nil {
		return v
	}
	content, err := c.Whole(v)
	if err != nil {
		sc.lost.note(err)
		return null
	}
	return content
}

// sizeOf is how many bytes a value of a job has for whoever carries it out.
func (j *Job) sizeOf(v json.RawMessage) int {
	if j.Plan == nil || j.Plan.Root == nil || j.Plan.Root.contents == nil {
		return len(v)
	}
	return j.Plan.Root.contents.Size(v)
}

// opener is what paths into values of the scope need.
func (sc *Scope) opener() expr.Opener {
	if sc.Plan.contents == nil {
		return nil
	}
	return sc.open
}

// lookAt is what references see that lead into one value.
func (sc *Scope) lookAt(input json.RawMessage) *expr.Env {
	env := &expr.Env{Input: input}
	sc.letOpen(env)
	return env
}

func (sc *Scope) letOpen(env *expr.Env) {
	if sc.Plan.contents != nil {
		env.Open, env.Whole = sc.open, sc.whole
	}
}

// filled is a value with the defaults of what was declared. One in which nothing was left out stays a reference.
func (sc *Scope) filled(in *types.Inputs, v json.RawMessage) json.RawMessage {
	if in == nil {
		return v
	}
	whole := sc.whole(v)
	if filled := in.Fill(whole); !bytes.Equal(filled, whole) {
		return filled
	}
	return v
}

// action is what a step ends with that has a result.
func (st *Step) action(result json.RawMessage) string {
	if p := st.Node.Post; p.ActionStatic == "" && p.ActionKey != "" {
		result = st.scope.open(result)
	}
	return st.Node.Post.action(result)
}

// lacks says why an output cannot be taken: it will be looked into, and what it stands for cannot be had.
func (d *decider) lacks(st *Step, output json.RawMessage) error {
	if n := st.Node; len(n.Post.OutputMap) > 0 || n.Post.ActionKey != "" || n.Deferred || n.Out != nil || n.Dag != nil && n.Dag.Takes != nil {
		st.scope.open(output)
	}
	return d.orLost(nil)
}
