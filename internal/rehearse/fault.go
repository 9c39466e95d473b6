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

// has says whether a seed may draw such a misfortune.
func (k Kinds) has(kind FaultKind) bool {
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

// place is what a fault strikes.
type place struct {
	kind FaultKind
	at   string
}

// chance decides about misfortunes: as a seed draws them, or as a schedule lists them.
type chance struct {
	rng    *rand.Rand // nil: only what is listed happens
	kinds  Kinds
	rates  map[FaultKind]int // in 1000
	listed map[place]time.Duration
	left   int // member restarts
}

func listed(s Schedule) *chance {
	c := &chance{listed: map[place]time.Duration{}}
	for _, f := range s {
		c.listed[place{f.Kind, f.At}] = f.By
	}
	return c
}

// seeded draws for each kind how often it strikes in this run: many runs have a few kinds, some have all.
func seeded(seed uint64, kinds Kinds) *chance {
	c := &chance{rng: rand.New(rand.NewPCG(seed, 0x7e57)), kinds: kinds, rates: map[FaultKind]int{}, left: 2}
	for _, kind := range faultKinds {
		rate := []int{0, 20, 100, 300}[c.rng.IntN(4)]
		if kinds.has(kind) {
			c.rates[kind] = rate
		}
	}
	return c
}

// quiet says that nothing can happen.
func (c *chance) quiet() bool { return c.rng == nil && len(c.listed) == 0 }

// strikes says whether a misfortune happens, and by how much. By draws that; ok is false when there is no amount that would do.
func (c *chance) strikes(kind FaultKind, at string, by func() (d time.Duration, ok bool)) (time.Duration, bool) {
	if c.rng == nil {
		d, there := c.listed[place{kind, at}]
		return d, there
	}
	if c.rates[kind] == 0 || c.rng.IntN(1000) >= c.rates[kind] {
		return 0, false
	}
	if kind == FaultRestart {
		if c.left == 0 {
			return 0, false
		}
		c.left--
	}
	if by == nil {
		return 0, true
	}
	return by()
}
