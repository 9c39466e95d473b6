package flow

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// Contents resolves references. A large value may be stored elsewhere. Then a small value that no
// user can write, the reference, replaces the large value in the task. A reference is resolved only
// where a decision depends on the content. The same reference always has the same content, so a
// repeated decision has the same result.
type Contents interface {
	// Open returns the content of a value that is a reference, and any other value unchanged.
	Open(v json.RawMessage) (json.RawMessage, error)
	// Whole returns a value with all references inside it replaced by their contents.
	Whole(v json.RawMessage) (json.RawMessage, error)
	// Size returns the number of bytes of the expanded value. Glimpse also returns its beginning,
	// and a hash that only equal values share.
	Size(v json.RawMessage) int
	Glimpse(v json.RawMessage, most int) (size int, begin []byte, sum [sha256.Size]byte)
}

// ErrNoContent is wrapped by errors of Contents when the content of a reference is lost or damaged,
// so a retry cannot succeed.
var ErrNoContent = errors.New("the content of a value is lost")

// SpoiledError reports that a decision failed halfway because a content was unavailable. The state
// must not be used any more.
type SpoiledError struct{ Err error }

func (e *SpoiledError) Error() string { return e.Err.Error() }

func (e *SpoiledError) Unwrap() error { return e.Err }

// Keep sets how a plan resolves the references of its tasks. Only the creator of the plan may call
// it.
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

// lostContent records the first content that was unavailable while a state was built or a decision
// made.
type lostContent struct{ err error }

func (l *lostContent) noteError(err error) {
	if l != nil && l.err == nil { // a nil receiver ignores errors
		l.err = err
	}
}

func (l *lostContent) takeError() (err error) {
	if l != nil {
		err, l.err = l.err, nil
	}
	return err
}

// Lost returns why the state does not match its events: a content that they depend on was
// unavailable. It returns nil if the state is sound.
func (s *State) Lost() error { return s.lost.err }

// orContentError returns err, or the error of a content that was unavailable during the preceding
// read.
func (d *decider) orContentError(err error) error {
	if lost := d.s.lost.takeError(); lost != nil {
		return lost
	}
	return err
}

// openValue returns the content of a reference, and any other value unchanged.
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

// expandValue returns a value with all references inside it replaced by their contents.
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

// sizeOf returns the number of bytes of a job's value as its carrier receives it.
func (j *Job) sizeOf(v json.RawMessage) int {
	if j.Plan == nil || j.Plan.Root == nil || j.Plan.Root.contents == nil {
		return len(v)
	}
	return j.Plan.Root.contents.Size(v)
}

// pathOpener returns the function that paths into values of the scope need to open references.
func (sc *Scope) pathOpener() expr.Opener {
	if sc.Plan.contents == nil {
		return nil
	}
	return sc.openValue
}

// inputEnv returns an environment for references into one value.
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

// fillDefaults returns a value with the declared defaults filled in. A reference stays a reference
// if no field was missing.
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

// resultAction returns the action that a step with this result ends with.
func (st *Step) resultAction(result json.RawMessage) string {
	if p := st.Node.Post; p.ActionStatic == "" && p.ActionKey != "" {
		result = st.scope.openValue(result)
	}
	return st.Node.Post.resultAction(result)
}

// checkOutputContent returns an error if the engine has to read an output whose content is
// unavailable.
func (d *decider) checkOutputContent(st *Step, output json.RawMessage) error {
	if n := st.Node; len(n.Post.OutputMap) > 0 || n.Post.ActionKey != "" || n.Deferred ||
		n.Out != nil || n.Dag != nil && n.Dag.Takes != nil {
		st.scope.openValue(output)
	}
	return d.orContentError(nil)
}
