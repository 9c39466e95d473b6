package lease

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/troupe-engine/troupe/actors/background"
)

// Outages are current failures of the store, by log message. The log gets one line at the start and
// one at the end of an outage, regardless of the number of tries.
type Outages struct {
	log        *slog.Logger
	work       *background.Work
	hasOutages atomic.Bool
	mu         sync.Mutex
	byMessage  map[string]*storeOutage
}

// NewOutages creates the outages of a member without a current failure. RecordCall ignores failures
// after the member has ended.
func NewOutages(log *slog.Logger, work *background.Work) *Outages {
	return &Outages{log: log, work: work, byMessage: map[string]*storeOutage{}}
}

// storeOutage is a current outage. It ends when every thing that failed works again.
type storeOutage struct {
	failing map[string]bool // things that fail, for example keys
	times   int
}

// RecordFailure records a failure for one thing. what is the log message and identifies the kind.
// It returns how often this kind has failed since the outage started.
func (o *Outages) RecordFailure(what, thing string, err error) (times int) {
	o.mu.Lock()
	is := o.byMessage[what]
	if is == nil {
		is = &storeOutage{failing: map[string]bool{}}
		o.byMessage[what] = is
		o.hasOutages.Store(true)
	}
	is.failing[thing] = true
	is.times++
	times = is.times
	o.mu.Unlock()
	if times == 1 {
		o.log.Warn(what+", retrying", "error", err)
	}
	return times
}

// RecordSuccess records that a thing works again. It ends the outage if no other thing fails.
func (o *Outages) RecordSuccess(what, thing string) {
	if !o.hasOutages.Load() {
		return
	}
	o.mu.Lock()
	is := o.byMessage[what]
	if is != nil {
		delete(is.failing, thing)
	}
	over := is != nil && len(is.failing) == 0
	if over {
		delete(o.byMessage, what)
		o.hasOutages.Store(len(o.byMessage) > 0)
	}
	o.mu.Unlock()
	if over {
		o.log.Info("store works again", "after", what, "failures", is.times)
	}
}

// RecordCall records the result of a store call. It ignores errors after the member has ended.
func (o *Outages) RecordCall(what, thing string, err error) {
	switch {
	case err == nil:
		o.RecordSuccess(what, thing)
	case !o.work.HasEnded():
		o.RecordFailure(what, thing, err)
	}
}
