package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// codeProgram is a function that is a flow, as data. Each block but the last ends with a restart.
type codeProgram struct {
	name  string
	lives []codeBlock
}

// codeBlock is a sequence of operations.
type codeBlock []codeOp

// codeKind is the kind of an operation.
type codeKind string

const (
	codeDo       codeKind = "do"
	codeSleep    codeKind = "sleep"
	codeSignal   codeKind = "signal"
	codeApproval codeKind = "approval"
	codeSet      codeKind = "set"
	codeVersion  codeKind = "version"
	codeNow      codeKind = "now"
	codeLoop     codeKind = "loop" // runs its first branch several times
	codeEach     codeKind = "each" // runs its first branch for several items
	codeGo       codeKind = "go"   // runs its first branch beside its second branch
	codeRace     codeKind = "race"
	codeFail     codeKind = "fail" // ends the function with an error
)

// codeOp is an operation. Its name is the name of its step or of its branches.
type codeOp struct {
	kind codeKind
	name string

	// codeDo: how its tries end
	fails   int // number of tries that fail; beyond the retries all fail
	retries int
	pause   time.Duration
	fatal   bool // whether failures of the step are permanent
	deaf    bool // whether the work ignores the end of its context
	undo    bool // whether the result is undone if the function fails
	lenient bool // whether the function continues after a failure

	delay    time.Duration // codeSleep: its duration; waits: their limit, or 0
	times    int           // codeLoop: number of rounds; codeEach: number of items
	atOnce   int           // codeEach
	awaited  bool          // codeGo: the function waits for the branch
	branches []codeBlock
}

// always is a number of failures that no step survives.
const always = 1 << 20

// undoName returns the name of the step that undoes another step.
func undoName(name string) string { return "undo-" + name }

// codeWriter draws a function.
type codeWriter struct {
	rng     *rand.Rand
	names   int
	signals map[string]json.RawMessage
	depth   int
	size    int // number of further operations
}

// drawFunction draws a scenario with a function as its flow.
func drawFunction(rng *rand.Rand, name string, rich bool) *flowScenario {
	w := &codeWriter{rng: rng, signals: map[string]json.RawMessage{}, size: 4 + rng.IntN(14)}
	p := &codeProgram{name: name}
	lives := 1
	if rich && rng.IntN(4) == 0 {
		lives += 1 + rng.IntN(2)
	}
	for range lives {
		block := w.writeBlock(1+rng.IntN(5), rich)
		if len(block) == 0 || len(p.lives) < lives-1 {
			block = append(block, w.writeDo())
		}
		p.lives = append(p.lives, block)
	}
	if rng.IntN(4) == 0 {
		last := &p.lives[lives-1]
		*last = append(*last, codeOp{kind: codeFail, name: w.newName("end")})
	}
	s := &flowScenario{signals: w.signals, code: p, params: json.RawMessage(fmt.Sprintf(`{"life":0,"sum":%d}`, rng.IntN(1000)))}
	s.definition, _ = json.Marshal(object{"mode": "code", "code": name})
	return s
}

func (w *codeWriter) newName(of string) string {
	w.names++
	return fmt.Sprint(of, w.names)
}

func (w *codeWriter) writeBlock(n int, rich bool) (b codeBlock) {
	for range n {
		if w.size--; w.size < 0 {
			return b
		}
		if rich {
			b = append(b, w.writeOp())
		} else {
			b = append(b, w.writeDo())
		}
	}
	return b
}

func (w *codeWriter) writeOp() codeOp {
	switch n := w.rng.IntN(20); {
	case n < 7:
		return w.writeDo()
	case n < 9:
		return codeOp{kind: codeSleep, name: w.newName("sleep"), delay: w.drawDelay()}
	case n < 11:
		return w.writeWait()
	case n < 12:
		return codeOp{kind: codeSet, name: pickOne(w.rng, "k1", "k2", "k3")}
	case n < 13:
		return codeOp{kind: pickOne(w.rng, codeVersion, codeNow), name: w.newName("version")}
	case n < 14 && w.depth == 0 && w.rng.IntN(3) == 0:
		return codeOp{kind: codeFail, name: w.newName("fail")}
	case n < 16:
		return w.writeDo()
	case w.depth < 2:
		return w.writeGroup()
	}
	return w.writeDo()
}

func (w *codeWriter) drawDelay() time.Duration {
	return pickOne(w.rng, 0, time.Millisecond, 10*time.Millisecond, 300*time.Millisecond, 3*time.Second, 20*time.Second)
}

func (w *codeWriter) writeDo() codeOp {
	op := codeOp{kind: codeDo, name: pickOne(w.rng, "a", "b", "c", w.newName("step")), undo: w.rng.IntN(3) == 0,
		deaf: w.rng.IntN(4) == 0, lenient: w.rng.IntN(2) == 0}
	if w.rng.IntN(3) == 0 {
		op.retries = 1 + w.rng.IntN(3)
		op.pause = pickOne(w.rng, 0, time.Millisecond, 200*time.Millisecond, 4*time.Second)
		op.fails = w.rng.IntN(op.retries + 1)
	}
	switch w.rng.IntN(12) {
	case 0:
		op.fails = always
	case 1:
		op.fails, op.fatal = always, true
	}
	return op
}

// writeWait draws a wait for a signal or a decision. With a limit either may come first.
func (w *codeWriter) writeWait() codeOp {
	op := codeOp{kind: pickOne(w.rng, codeSignal, codeApproval), name: w.newName("signal")}
	w.signals[op.name] = json.RawMessage(pickOne(w.rng, `true`, `"approved"`, `{"by":"somebody"}`, `7`))
	if w.rng.IntN(3) == 0 {
		op.delay = pickOne(w.rng, 50*time.Millisecond, 2*time.Second, 9*time.Second)
	}
	return op
}

// writeGroup draws operations with branches.
func (w *codeWriter) writeGroup() codeOp {
	w.depth++
	defer func() { w.depth-- }()
	block := func() codeBlock { return w.writeBlock(1+w.rng.IntN(3), true) }
	op := codeOp{kind: pickOne(w.rng, codeLoop, codeEach, codeEach, codeGo, codeRace, codeRace),
		lenient: w.rng.IntN(2) == 0, times: 1 + w.rng.IntN(3), awaited: w.rng.IntN(4) > 0}
	op.name = w.newName(string(op.kind))
	op.atOnce = 1 + w.rng.IntN(op.times)
	op.branches = []codeBlock{block()}
	switch op.kind {
	case codeGo:
		op.branches = append(op.branches, block())
	case codeRace:
		for range 1 + w.rng.IntN(2) {
			op.branches = append(op.branches, block())
		}
	}
	return op
}
