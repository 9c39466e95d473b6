package rehearse

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// FaultKind is a kind of fault.
type FaultKind string

// Faults of a call or an act.
const (
	FaultLate  FaultKind = "late"  // a report or an act comes later
	FaultEarly FaultKind = "early" // a signal comes earlier
	FaultTwice FaultKind = "twice" // a report comes twice
	FaultCrash FaultKind = "crash" // the worker is lost before it has begun a job
	FaultLost  FaultKind = "lost"  // the worker is lost after the job and before the report
	// the member ends just before a report, and another member takes over
	FaultRestart FaultKind = "restart"
	FaultError   FaultKind = "error" // a call fails that would have succeeded
	FaultDown    FaultKind = "down"  // a call fails, and so do all later attempts of its unit
)

var faultKinds = []FaultKind{FaultLate, FaultEarly, FaultTwice, FaultCrash, FaultLost, FaultRestart, FaultError, FaultDown}

// Kinds are the classes of faults that users can select.
type Kinds struct {
	Order    bool // results and signals come in another order
	Repeat   bool // reports come twice
	Crash    bool // workers and members end
	Timeouts bool // delays may exceed timeouts
	Errors   bool // calls fail
}

// Words are the names of the fields of Kinds.
var Words = []string{"order", "repeat", "crash", "timeouts", "errors"}

// Harmless are the kinds that must not change the result of a flow.
var Harmless = Kinds{Order: true, Repeat: true, Crash: true}

// Set selects the kind with this name.
func (k *Kinds) Set(word string) bool {
	at := map[string]*bool{"order": &k.Order, "repeat": &k.Repeat, "crash": &k.Crash, "timeouts": &k.Timeouts, "errors": &k.Errors}[word]
	if at != nil {
		*at = true
	}
	return at != nil
}

// canDraw reports whether a seed may draw a fault of this kind.
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

// Fault is a fault: its kind, its target, and its amount.
type Fault struct {
	Kind FaultKind     `json:"kind"`
	At   string        `json:"at"`
	By   time.Duration `json:"by,omitempty"`
}

// Text describes a fault.
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

// Schedule is the set of faults of a run; the order has no meaning.
type Schedule []Fault

// faultTarget is the target of a fault.
type faultTarget struct {
	kind FaultKind
	at   string
}

// faultSource decides about faults: drawn from a seed, or listed by a schedule.
type faultSource struct {
	rng          *rand.Rand // nil if only scheduled faults happen
	kinds        Kinds
	rates        map[FaultKind]int // in 1/1000, by kind
	scheduled    map[faultTarget]time.Duration
	restartsLeft int // number of member restarts left
}

func newScheduled(s Schedule) *faultSource {
	c := &faultSource{scheduled: map[faultTarget]time.Duration{}}
	for _, f := range s {
		c.scheduled[faultTarget{f.Kind, f.At}] = f.By
	}
	return c
}

// newSeeded draws the rate of each allowed kind. One kind in four gets rate 0, so most runs lack
// some kinds.
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

// isQuiet reports whether no fault can happen.
func (c *faultSource) isQuiet() bool { return c.rng == nil && len(c.scheduled) == 0 }

// drawFault reports whether a fault happens, and its amount. The function by draws the amount; ok
// is false if no amount fits.
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
