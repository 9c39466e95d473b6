package sim

import (
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/flow"
)

// codeReference evaluates a function by its meaning alone. It takes the results of chance, such as
// the winner of a race, from the recorded steps.
type codeReference struct {
	record *codeRecord
	prefix string
	wrong  error // the first recorded step that is missing or has another result
}

// referenceBranch is a branch of the reference execution.
type referenceBranch struct {
	*codeReference
	path string
	uses map[string]int
}

// evaluateFunction returns the result of a function, or its error. wrong is about a step that is
// missing, or that has another result than in a run without faults.
func evaluateFunction(p *codeProgram, in codeInput, record *codeRecord) (out codeInput, failed, wrong error) {
	for ; in.Life < len(p.lives); in.Life++ {
		x := &codeReference{record: record, prefix: lifePrefix(in.Life)}
		b := &referenceBranch{x, "", map[string]int{}}
		sum, err := b.runBlock(p.lives[in.Life], in.Sum)
		if x.wrong != nil || err != nil {
			return in, err, x.wrong
		}
		in.Sum = sum
	}
	return in, nil, nil
}

func (b *referenceBranch) newBranch(path string) *referenceBranch {
	return &referenceBranch{b.codeReference, b.path + path + "/", map[string]int{}}
}

func (b *referenceBranch) placeOf(name string) string {
	b.uses[name]++
	if n := b.uses[name]; n > 1 {
		return fmt.Sprint(name, "#", n)
	}
	return name
}

// stepOf returns the recorded step with the next use of a name.
func (b *referenceBranch) stepOf(name string) *flow.CodeStep {
	place := b.prefix + b.path + b.placeOf(name)
	at, stored := b.record.stored[place]
	if !stored {
		b.reportWrong("the step %s is missing", place)
		return &flow.CodeStep{}
	}
	return &b.record.steps[at]
}

func (b *referenceBranch) reportWrong(format string, args ...any) {
	if b.wrong == nil {
		b.wrong = fmt.Errorf(format, args...)
	}
}

func (b *referenceBranch) runBlock(block codeBlock, sum uint32) (_ uint32, err error) {
	for i := range block {
		if sum, err = b.runOp(&block[i], sum); err != nil || b.wrong != nil {
			return 0, err
		}
	}
	return sum, nil
}

func (b *referenceBranch) runOp(op *codeOp, sum uint32) (uint32, error) {
	switch op.kind {
	case codeDo:
		return b.runStep(op, sum)
	case codeSleep:
		b.stepOf(op.name)
		return mixSum(sum, op.name), nil
	case codeSignal, codeApproval:
		return b.runWait(op, sum), nil
	case codeSet:
		if s := b.stepOf(op.name); string(s.Output) != fmt.Sprint(sum) {
			b.reportWrong("the step %s sets %s and not %d", s.Place(), s.Output, sum)
		}
		return mixSum(sum, op.name), nil
	case codeVersion:
		b.stepOf(op.name)
		return mixSum(sum, "2"), nil
	case codeNow:
		b.stepOf("now")
		return mixSum(sum, "now"), nil
	case codeFail:
		return 0, fmt.Errorf("%s: %w", op.name, errScripted)
	case codeLoop:
		return b.runLoop(op, sum)
	case codeEach:
		return b.runEach(op, sum)
	case codeGo:
		return b.runBeside(op, sum)
	default:
		return b.runRace(op, sum)
	}
}

func (b *referenceBranch) runStep(op *codeOp, sum uint32) (uint32, error) {
	s := b.stepOf(op.name)
	fails, result := op.fails == always, fmt.Sprint(mixSum(sum, op.name))
	if fails != (s.Error != "") || !fails && string(s.Output) != result {
		b.reportWrong("the step %s has the result %s %q, it should be %s, or fail: %v", s.Place(), s.Output, s.Error, result, fails)
	}
	switch {
	case fails && op.lenient:
		return mixSum(sum, op.name, "failed"), nil
	case fails:
		return 0, &durable.Error{Step: flow.TrimRestartPrefix(s.Place()), Text: errScripted.Error()}
	}
	return mixSum(sum, result), nil
}

func (b *referenceBranch) runWait(op *codeOp, sum uint32) uint32 {
	s := b.stepOf(op.name)
	switch {
	case s.Error != "" && op.delay == 0:
		b.reportWrong("the wait %s fails with %q", s.Place(), s.Error)
	case s.Error != "":
		return mixSum(sum, op.name, "late")
	case op.kind == codeApproval:
		return mixSum(sum, op.name, "true")
	}
	return mixSum(sum, op.name, string(s.Output))
}

func (b *referenceBranch) runLoop(op *codeOp, sum uint32) (_ uint32, err error) {
	for range op.times {
		if sum, err = b.runBlock(op.branches[0], sum); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

func (b *referenceBranch) runEach(op *codeOp, sum uint32) (uint32, error) {
	place, sums, failed := b.placeOf(op.name), make([]uint32, op.times), make([]error, op.times)
	for i := range sums {
		v, err := b.newBranch(fmt.Sprint(place, "/", i)).runBlock(op.branches[0], mixSum(sum, fmt.Sprint(i)))
		if err != nil {
			failed[i] = fmt.Errorf("%s[%d]: %w", op.name, i, err)
		}
		sums[i] = v
	}
	return op.joinSums(sum, sums, errors.Join(failed...))
}

func (b *referenceBranch) runBeside(op *codeOp, sum uint32) (uint32, error) {
	beside := b.newBranch(b.placeOf(op.name))
	own, err := b.runBlock(op.branches[1], mixSum(sum, op.name))
	if err != nil || !op.awaited {
		return own, err
	}
	other, err := beside.runBlock(op.branches[0], sum)
	return op.joinSums(own, []uint32{own, other}, err)
}

func (b *referenceBranch) runRace(op *codeOp, sum uint32) (uint32, error) {
	s := b.stepOf(op.name)
	winner := 0
	if _, err := fmt.Sscan(string(s.Output), &winner); err != nil || winner < 0 || winner >= len(op.branches) {
		b.reportWrong("the winner of %s is %s", s.Place(), s.Output)
		return 0, nil
	}
	path := flow.TrimRestartPrefix(s.Place())[len(b.path):]
	v, err := b.newBranch(fmt.Sprint(path, "/", winner)).runBlock(op.branches[winner], mixSum(sum, fmt.Sprint(winner)))
	return op.joinSums(mixSum(sum, fmt.Sprint(winner)), []uint32{v}, err)
}
