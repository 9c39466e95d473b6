package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// codeInput is the input of a function: the number of its restarts, and the sum of its results so
// far.
type codeInput struct {
	Life int    `json:"life"`
	Sum  uint32 `json:"sum"`
}

// mixSum adds a result to the sum of a branch, which so depends on all results and their order.
func mixSum(sum uint32, texts ...string) uint32 {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%d %s", sum, strings.Join(texts, " "))
	return h.Sum32()
}

// errScripted is the error of an operation that fails by script.
var errScripted = errors.New("broken by script")

// codeCall is one call of a program. Its goroutines access the world only by the functions of this
// struct, which return early when their first argument is closed.
type codeCall struct {
	takeTurn func(done <-chan struct{}, path, last string)    // waits until a branch may continue
	carryOut func(done <-chan struct{}, work *codeWork) error // does the work of a step
}

// codeBranch is the call of one branch of a program. last is the place of its last result.
type codeBranch struct {
	*codeCall
	f    *durable.Flow
	path string
	last string
	uses map[string]int
}

// callProgram calls a program as a function.
func (c *codeCall) callProgram(talk *conversation.Conversation, p *codeProgram) (json.RawMessage, error) {
	return durable.Invoke(talk, p.name, func(f *durable.Flow, in codeInput) (codeInput, error) {
		b := &codeBranch{codeCall: c, f: f, uses: map[string]int{}}
		sum, err := b.runBlock(p.lives[in.Life], in.Sum)
		if err != nil {
			return codeInput{}, err
		}
		next := codeInput{in.Life + 1, sum}
		if next.Life < len(p.lives) {
			return codeInput{}, f.Restart(next)
		}
		return next, nil
	})
}

// newBranch returns the branch of a group.
func (b *codeBranch) newBranch(f *durable.Flow, path string) *codeBranch {
	return &codeBranch{codeCall: b.codeCall, f: f, path: b.path + path + "/", uses: map[string]int{}}
}

// placeOf returns the place of the next use of a name, numbered as in the conversation.
func (b *codeBranch) placeOf(name string) string {
	b.uses[name]++
	if n := b.uses[name]; n > 1 {
		return fmt.Sprint(name, "#", n)
	}
	return name
}

func (b *codeBranch) runBlock(block codeBlock, sum uint32) (uint32, error) {
	for i := range block {
		b.takeTurn(b.f.Context().Done(), b.path, b.last)
		var err error
		if sum, err = b.runOp(&block[i], sum); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

func (b *codeBranch) runOp(op *codeOp, sum uint32) (uint32, error) {
	switch op.kind {
	case codeDo:
		return b.runStep(op, sum)
	case codeSleep:
		b.last = b.path + b.placeOf(op.name)
		b.f.Sleep(op.name, op.delay)
		return mixSum(sum, op.name), nil
	case codeSignal, codeApproval:
		return b.runWait(op, sum)
	case codeSet:
		b.last = b.path + b.placeOf(op.name)
		return mixSum(sum, op.name), b.f.Set(op.name, sum)
	case codeVersion:
		b.last = b.path + b.placeOf(op.name)
		return mixSum(sum, fmt.Sprint(b.f.Version(op.name, 1, 2))), nil
	case codeNow:
		b.last = b.path + b.placeOf("now")
		b.f.Now()
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

// runStep carries out a step, and registers its undo.
func (b *codeBranch) runStep(op *codeOp, sum uint32) (uint32, error) {
	b.last = b.path + b.placeOf(op.name)
	options := []durable.Option{durable.Retry(op.retries, op.pause), durable.Input(sum)}
	v, err := durable.Do(b.f, op.name, func(ctx context.Context) (uint32, error) {
		if err := b.performWork(ctx, op, ""); err != nil {
			return 0, err
		}
		return mixSum(sum, op.name), nil
	}, options...)
	switch {
	case err != nil && op.lenient:
		return mixSum(sum, op.name, "failed"), nil
	case err != nil:
		return 0, err
	case op.undo:
		place := b.last
		b.f.Undo(undoName(op.name), func(ctx context.Context) error { return b.performWork(ctx, op, place) })
	}
	return mixSum(sum, fmt.Sprint(v)), nil
}

// performWork does the work of a step, or of its undo.
func (b *codeBranch) performWork(ctx context.Context, op *codeOp, undoes string) error {
	told, done := job.From(ctx), ctx.Done()
	if op.deaf {
		done = nil
	}
	return b.carryOut(done, &codeWork{place: told.Step, key: told.Key(), op: op, undoes: undoes})
}

func (b *codeBranch) runWait(op *codeOp, sum uint32) (uint32, error) {
	b.last = b.path + b.placeOf(op.name)
	var options []durable.Option
	if op.delay > 0 {
		options = append(options, durable.Within(op.delay))
	}
	var value string
	var err error
	if op.kind == codeSignal {
		var raw json.RawMessage
		raw, err = durable.Signal[json.RawMessage](b.f, op.name, options...)
		value = string(raw)
	} else {
		var ok bool
		ok, err = durable.Approve(b.f, op.name, options...)
		value = fmt.Sprint(ok)
	}
	if errors.Is(err, durable.ErrTimeout) {
		return mixSum(sum, op.name, "late"), nil
	}
	return mixSum(sum, op.name, value), err
}

func (b *codeBranch) runLoop(op *codeOp, sum uint32) (_ uint32, err error) {
	for range op.times {
		if sum, err = b.runBlock(op.branches[0], sum); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

func (b *codeBranch) runEach(op *codeOp, sum uint32) (uint32, error) {
	items := make([]int, op.times)
	for i := range items {
		items[i] = i
	}
	place := b.placeOf(op.name)
	sums, err := durable.Each(b.f, op.name, items, op.atOnce, func(f *durable.Flow, i int) (uint32, error) {
		return b.newBranch(f, fmt.Sprint(place, "/", i)).runBlock(op.branches[0], mixSum(sum, fmt.Sprint(i)))
	})
	b.last = ""
	return op.joinSums(sum, sums, err)
}

// joinSums returns the sum behind branches that have ended.
func (op *codeOp) joinSums(sum uint32, sums []uint32, err error) (uint32, error) {
	switch {
	case err == nil:
		return mixSum(sum, fmt.Sprint(sums)), nil
	case op.lenient:
		return mixSum(sum, op.name, "failed"), nil
	}
	return 0, err
}

func (b *codeBranch) runBeside(op *codeOp, sum uint32) (uint32, error) {
	place := b.placeOf(op.name)
	beside := durable.Go(b.f, op.name, func(f *durable.Flow) (uint32, error) {
		return b.newBranch(f, place).runBlock(op.branches[0], sum)
	})
	own, err := b.runBlock(op.branches[1], mixSum(sum, op.name))
	if err != nil || !op.awaited {
		return own, err
	}
	other, err := beside.Wait(b.f)
	b.last = ""
	return op.joinSums(own, []uint32{own, other}, err)
}

func (b *codeBranch) runRace(op *codeOp, sum uint32) (uint32, error) {
	place := b.placeOf(op.name)
	runs := make([]func(*durable.Flow) (uint32, error), len(op.branches))
	for i := range runs {
		runs[i] = func(f *durable.Flow) (uint32, error) {
			return b.newBranch(f, fmt.Sprint(place, "/", i)).runBlock(op.branches[i], mixSum(sum, fmt.Sprint(i)))
		}
	}
	winner, v, err := durable.Race(b.f, op.name, runs...)
	b.last = b.path + place
	return op.joinSums(mixSum(sum, fmt.Sprint(winner)), []uint32{v}, err)
}
