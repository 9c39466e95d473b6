package flow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Var is an environment variable of a program. Its text may contain values that are known only when
// an attempt begins.
type Var struct {
	Name  string
	Parts []VarPart
}

// VarPart is a literal text or a reference.
type VarPart struct {
	Text string // literal text, or the reference as written
	Ref  *VarRef
}

// VarRef is a reference in a variable. It may refer to everything that the references of keys may
// refer to, and to the output of a dependency.
type VarRef struct {
	KeyText
	Of int     // index of the dependency; -1 for any other reference
	Or *string // replacement for a missing or null value; if nil, the attempt fails
}

// MaxVariable is the maximum size of one variable in bytes. The kernel limit is 128 KiB.
const MaxVariable = 96 << 10

// maxVariables is the maximum size of all filled variables of a program in bytes. The kernel limit
// is close, and each attempt holds the variables in memory.
const maxVariables = 1 << 20

// readsShared reports whether the text of the variable may change later, because it contains a
// value of shared.
func (v *Var) readsShared() bool {
	return slices.ContainsFunc(v.Parts, func(p VarPart) bool {
		return p.Ref != nil &&
			p.Ref.Of < 0 && strings.HasPrefix(p.Ref.Text, "$shared")
	})
}

// sharedVars returns the variables that an attempt must keep from its start; nil if none. Variables
// that cannot be filled in are omitted.
func (st *Step) sharedVars(unit int) (kept map[string]string) {
	list, size := st.unitExec(unit).Vars, 0
	for i := range list {
		if !list[i].readsShared() {
			continue
		}
		if text, _, err := st.fillVariable(&list[i], unit); err == nil {
			if size += len(text); size > maxVariables {
				return kept // the attempt fails because of the size
			}
			if kept == nil {
				kept = map[string]string{}
			}
			kept[list[i].Name] = text
		}
	}
	return kept
}

// fillVariables returns the filled variables of a unit's attempt, and the approximate number of
// bytes that were read to fill them.
func (st *Step) fillVariables(unit int) (filled map[string]string, read int, err error) {
	list := st.unitExec(unit).Vars
	filled, size := make(map[string]string, len(list)), 0
	var kept map[string]string
	if live := st.Units[unit].Live; live != nil {
		kept = live.Vars
	}
	for i := range list {
		v := &list[i]
		text, there := kept[v.Name]
		if !there {
			var n int
			text, n, err = st.fillVariable(v, unit)
			read += n
			if err != nil {
				return filled, read, err
			}
		}
		if size += len(text); size > maxVariables {
			return filled, read, Errorf(Limit, "env.%s: the variables have more than %d bytes "+
				"together: the program finds its input on stdin", v.Name, maxVariables)
		}
		filled[v.Name] = text
	}
	return filled, read, nil
}

// fillVariable returns the current text of a variable, and the approximate number of bytes that
// were read to fill it.
func (st *Step) fillVariable(v *Var, unit int) (text string, read int, err error) {
	var b strings.Builder
	for _, part := range v.Parts {
		text := part.Text
		if part.Ref != nil {
			in, there := st.varSource(part.Ref, unit)
			read += len(in.Params) + len(in.Input)
			if text, err = part.Ref.resolveText(in, there, part.Text); err != nil {
				return "", read, Errorf(Invalid, "env.%s: %s", v.Name, err)
			}
		}
		b.WriteString(text)
	}
	switch text = b.String(); {
	case len(text) > MaxVariable:
		return "", read, Errorf(Limit, "env.%s has %d bytes, more than the %d a variable may "+
			"have: the program finds its input on stdin", v.Name, len(text), MaxVariable)
	case strings.ContainsRune(text, 0):
		return "", read, Errorf(Invalid, "env.%s holds a NUL character, which no variable can", v.Name)
	}
	return text, read, nil
}

// varSource returns the value in which a reference is resolved. It returns false for a dependency
// without an output.
func (st *Step) varSource(r *VarRef, unit int) (in *expr.Env, there bool) {
	switch {
	case r.Of >= 0:
		dep := &st.scope.Nodes[r.Of]
		return st.scope.inputEnv(orNull(dep.Output)), dep.Status() == StepCompleted
	case r.From == KeyFromItem:
		return st.scope.inputEnv(st.itemOf(unit)), true
	case r.From == KeyFromRun:
		return st.scope.inputEnv(st.runFor()), true
	}
	return st.scope.referenceEnv(st.Params, st.unitInput(unit)), true
}

// resolveText returns the text that replaces a reference.
func (r *VarRef) resolveText(in *expr.Env, there bool, written string) (string, error) {
	var v json.RawMessage
	if there {
		v = in.WholeOf(r.Ref.Resolve(in))
	}
	if text, ok := expr.String(v); ok {
		return text, nil
	}
	switch {
	case len(v) > 0 && expr.KindOf(v) != expr.KindNull:
		return string(expr.Compact(v)), nil
	case r.Or != nil:
		return *r.Or, nil
	}
	return "", Errorf(Invalid, "there is no %s", written)
}

// fillIn adds the variables of an attempt to its job, for the starter of the program. An attempt
// with a missing variable is never dispatched: it fails in the decision in which it begins.
func (st *Step) fillIn(j *Job) {
	vars, _, _ := st.fillVariables(j.Unit)
	if j.Exec.Program == nil {
		j.Params = withVars(j.Params, vars)
		return
	}
	own, program := *j.Exec, *j.Exec.Program
	program.Env = maps.Clone(program.Env)
	maps.Copy(program.Env, vars)
	own.Program = &program
	j.Exec = &own
}

// withVars returns params for a worker, with the variables set in their program.
func withVars(params json.RawMessage, vars map[string]string) json.RawMessage {
	program, _ := expr.Field(params, ProgramParam)
	env, _ := expr.Field(program, "env")
	filled, _ := json.Marshal(vars) // texts can always be encoded
	return expr.SetField(params, ProgramParam, expr.SetField(program, "env", expr.Merge(env, filled)))
}

// noteVars records attempts whose variables lack a value when they begin.
func (d *decider) noteVars(e *Event) {
	if e.Type != AttemptsDispatched {
		return
	}
	st := d.s.activeStep(e.Address())
	if st == nil {
		return
	}
	for i := e.Unit; i < e.Unit+e.Total && i < len(st.Units); i++ {
		if len(st.unitExec(i).Vars) == 0 {
			continue
		}
		_, read, err := st.fillVariables(i)
		d.effort += read
		if err = d.orContentError(err); err != nil {
			d.unfilled = append(d.unfilled, st.unitAddress(i))
		}
	}
}

// failUnfilled fails the attempts whose variables cannot be filled in. They have no carrier.
func (d *decider) failUnfilled() {
	for len(d.unfilled) > 0 {
		a := d.unfilled[0]
		d.unfilled = d.unfilled[1:]
		st, u := d.s.findAttempt(a)
		if u == nil || d.s.Status.Ended() {
			continue
		}
		_, _, err := st.fillVariables(a.Unit)
		if err = d.orContentError(err); err != nil {
			d.attemptPart().settleAttempt(st, u, Report{Address: a, Fatal: true, Error: err.Error()})
		}
	}
}

// lacksVariable reports whether an attempt cannot be dispatched because a variable cannot be filled
// in.
func (st *Step) lacksVariable(unit int) bool {
	if len(st.unitExec(unit).Vars) == 0 {
		return false
	}
	before := st.scope.lost.takeError()
	_, _, err := st.fillVariables(unit)
	lacks := st.scope.lost.takeError() // the decision itself reports the error
	st.scope.lost.noteError(before)
	return lacks != nil || err != nil
}

// unitAddress returns the address of a unit's attempt.
func (st *Step) unitAddress(unit int) Address {
	a := st.Address()
	a.Unit, a.Attempt = unit, int(st.Units[unit].Attempt)
	return a
}
