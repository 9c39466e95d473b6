package rehearse

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// FaultKind is a kind of misfortune.
type FaultKind string

// Misfortunes. What they are about is a call or an act.
const (
	FaultLate    FaultKind = "late"    // a report or an act comes later
	FaultEarly   FaultKind = "early"   // a signal comes earlier
	FaultTwice   FaultKind = "twice"   // a report comes once more
	FaultCrash   FaultKind = "crash"   // whoever carries a job out is gone before he has begun
	FaultLost    FaultKind = "lost"    // or when he is done, before he has said so
	FaultRestart FaultKind = "restart" // the member ends when a report is about to be taken, and another one takes over
	FaultError   FaultKind = "error"   // a call fails that would have gone well
	FaultDown    FaultKind = "down"    // it fails, and so do all further attempts of its unit
)

var faultKinds = []FaultKind{FaultLate, FaultEarly, FaultTwice, FaultCrash, FaultLost, FaultRestart, FaultError, FaultDown}

// Kinds are the words in which users say what may happen.
type Kinds struct {
	Order    bool // results and signals come in another order
	Repeat   bool // reports come twice
	Crash    bool // workers and members end
	Timeouts bool // what is late may be later than its timeout
	Errors   bool // calls fail
}

// Words of Kinds.
var Words = []string{"order", "repeat", "crash", "timeouts", "errors"}

// Harmless are the kinds that a flow should not notice.
var Harmless = Kinds{Order: true, Repeat: true, Crash: true}

// Set switches the kind of a word on.
func (k *Kinds) Set(word string) bool {
	at := map[string]*bool{"order": &k.Order, "repeat": &k.Repeat, "crash": &k.Crash, "timeouts": &k.Timeouts, "errors": &k.Errors}[word]
	if at != nil {
		*at = true
	}
	return at != nil
}

// canDraw reports whether a seed may draw such a misfortune.
func (k Kinds) canDraw(kind FaultKind) bool {
	switch kind {
	case FaultLate, FaultEarly:
		return k.Order || k.Timeouts
	case FaultTwice:
		return k.Repeat
	case FaultCrash, FaultLost, FaultRestart:
		return k.Crash
	}
	return k.Errors
}

// Fault is a misfortune: of which kind, what it strikes, and by how much.
type Fault struct {
	Kind FaultKind     `json:"kind"`
	At   string        `json:"at"`
	By   time.Duration `json:"by,omitempty"`
}

// Text is a fault in words.
func (f Fault) Text() string {
	switch f.Kind {
	case FaultLate:
		return fmt.Sprintf("%s comes %s late", f.At, Span(f.By))
	case FaultEarly:
		return fmt.Sprintf("%s comes %s early", f.At, Span(f.By))
	case FaultTwice:
		return fmt.Sprintf("the report of %s comes once more, %s later", f.At, Span(f.By))
	case FaultCrash:
		return fmt.Sprintf("the worker of %s crashes before it has begun", f.At)
	case FaultLost:
		return fmt.Sprintf("the worker of %s crashes when it is done, before it says so", f.At)
	case FaultRestart:
		return fmt.Sprintf("the member crashes as %s reports; another one takes over", f.At)
	case FaultError:
		return f.At + " fails"
	}
	return f.At + " fails, and so does every further attempt"
}

// Schedule are the misfortunes of a run, in no order that means anything.
type Schedule []Fault

// faultTarget is what a fault strikes.
type faultTarget struct {
	kind FaultKind
	at   string
}

// faultSource decides about misfortunes: as a seed draws them, or as a schedule lists them.
type faultSource struct {
	rng          *rand.Rand // nil: only what is listed happens
	kinds        Kinds
	rates        map[FaultKind]int // in 1000
	scheduled    map[faultTarget]time.Duration
	restartsLeft int // member restarts
}

func newScheduled(s Schedule) *faultSource {
	c := &faultSource{scheduled: map[faultTarget]time.Duration{}}
	for _, f := range s {
		c.scheduled[faultTarget{f.Kind, f.At}] = f.By
	}
	return c
}

// newSeeded draws for each kind how often it strikes in this run: many runs have a few kinds, some
// have all.
func newSeeded(seed uint64, kinds Kinds) *faultSource {
	c := &faultSource{rng: rand.New(rand.NewPCG(seed, 0x7e57)), kinds: kinds, rates: map[FaultKind]int{}, restartsLeft: 2}
	for _, kind := range faultKinds {
		rate := []int{0, 20, 100, 300}[c.rng.IntN(4)]
		if kinds.canDraw(kind) {
			c.rates[kind] = rate
		}
	}
	return c
}

// isQuiet says that nothing can happen.
func (c *faultSource) isQuiet() bool { return c.rng == nil && len(c.scheduled) == 0 }

// drawFault reports whether a misfortune happens, and by how much. By draws that; ok is false when
// there is no amount that would do.
func (c *faultSource) drawFault(kind FaultKind, at string, by func() (d time.Duration, ok bool)) (time.Duration, bool) {
	if c.rng == nil {
		d, there := c.scheduled[faultTarget{kind, at}]
		return d, there
	}
	if c.rates[kind] == 0 || c.rng.IntN(1000) >= c.rates[kind] {
		return 0, false
	}
	if kind == FaultRestart {
		if c.restartsLeft == 0 {
			return 0, false
		}
		c.restartsLeft--
	}
	if by == nil {
		return 0, true
	}
	return by()
}
