package flow

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// Contents knows what references stand for. A value that is large may be kept elsewhere; then a
// small one that no user can write stands in its place, which travels through a task like any
// other, and is opened only where a decision depends on what is in it. The same reference always
// has the same content, so whoever decides again decides the same.
type Contents interface {
	// Open is what a value stands for that is a reference; any other one is returned as it is.
	Open(v json.RawMessage) (json.RawMessage, error)
	// Whole is a value with what stands for its references in their places.
	Whole(v json.RawMessage) (json.RawMessage, error)
	// Size is how many bytes that has. Glimpse also tells how it begins, and what it has in common
	// with equal ones and no others.
	Size(v json.RawMessage) int
	Glimpse(v json.RawMessage, most int) (size int, begin []byte, sum [sha256.Size]byte)
}

// ErrNoContent is what errors of Contents are when what a reference stands for is gone, or not what
// was written: asking again is of no use.
var ErrNoContent = errors.New("the content of a value is lost")

// SpoiledError says that a decision cannot be made because a content could not be had in the middle
// of it. The state is of no more use.
type SpoiledError struct{ Err error }

func (e *SpoiledError) Error() string { return e.Err.Error() }

func (e *SpoiledError) Unwrap() error { return e.Err }

// Keep has a plan know what the references of its tasks stand for. It is for whoever has just made
// the plan.
func (p *Plan) Keep(c Contents) {
	p.Root.setContents(c)
	if p.Closing != nil {
		p.Closing.setContents(c)
	}
}

func (g *PlanScope) setContents(c Contents) {
	g.contents = c
	for _, n := range g.Nodes {
		if n.Sub != nil {
			n.Sub.setContents(c)
		}
	}
}

// lostContent is the first content that could not be had while a state was made or decided about.
type lostContent struct{ err error }

func (l *lostContent) noteError(err error) {
	if l != nil && l.err == nil { // nobody asks one that is not there
		l.err = err
	}
}

func (l *lostContent) takeError() (err error) {
	if l != nil {
		err, l.err = l.err, nil
	}
	return err
}

// Lost is why the state is not what its events make of it: a content that they depend on could not
// be had. nil = it is.
func (s *State) Lost() error { return s.lost.err }

// orContentError is an error, or else that of a content which could not be had for what was just
// looked at.
func (d *decider) orContentError(err error) error {
	if lost := d.s.lost.takeError(); lost != nil {
		return lost
	}
	return err
}

// openValue is what a value stands for.
func (sc *Scope) openValue(v json.RawMessage) json.RawMessage {
	c := sc.Plan.contents
	if c == nil {
		return v
	}
	content, err := c.Open(v)
	if err != nil {
		sc.lost.noteError(err)
		return null
	}
	return content
}

// expandValue is a value with what its references stand for.
func (sc *Scope) expandValue(v json.RawMessage) json.RawMessage {
	c := sc.Plan.contents
	if c == nil {
		return v
	}
	content, err := c.Whole(v)
	if err != nil {
		sc.lost.noteError(err)
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

// pathOpener is what paths into values of the scope need.
func (sc *Scope) pathOpener() expr.Opener {
	if sc.Plan.contents == nil {
		return nil
	}
	return sc.openValue
}

// inputEnv is what references see that lead into one value.
func (sc *Scope) inputEnv(input json.RawMessage) *expr.Env {
	env := &expr.Env{Input: input}
	sc.setOpeners(env)
	return env
}

func (sc *Scope) setOpeners(env *expr.Env) {
	if sc.Plan.contents != nil {
		env.Open, env.Whole = sc.openValue, sc.expandValue
	}
}

// fillDefaults is a value with the defaults of what was declared. One in which nothing was left out
// stays a reference.
func (sc *Scope) fillDefaults(in *types.Inputs, v json.RawMessage) json.RawMessage {
	if in == nil {
		return v
	}
	whole := sc.expandValue(v)
	if filled := in.Fill(whole); !bytes.Equal(filled, whole) {
		return filled
	}
	return v
}

// resultAction is what a step ends with that has a result.
func (st *Step) resultAction(result json.RawMessage) string {
	if p := st.Node.Post; p.ActionStatic == "" && p.ActionKey != "" {
		result = st.scope.openValue(result)
	}
	return st.Node.Post.resultAction(result)
}

// checkOutputContent says why an output cannot be taken: it will be looked into, and what it stands
// for cannot be had.
func (d *decider) checkOutputContent(st *Step, output json.RawMessage) error {
	if n := st.Node; len(n.Post.OutputMap) > 0 || n.Post.ActionKey != "" || n.Deferred || n.Out != nil || n.Dag != nil && n.Dag.Takes != nil {
		st.scope.openValue(output)
	}
	return d.orContentError(nil)
}
