package lease

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/troupe-engine/troupe/actors/background"
)

// Outages are current failures of the store, by log message. The log gets one line when an
// outage starts and one when it ends, however many tries there are.
type Outages struct {
	log        *slog.Logger
	work       *background.Work
	hasOutages atomic.Bool
	mu         sync.Mutex
	byMessage  map[string]*storeOutage
}

// NewOutages creates the outages of a member. None is recorded as long as it ends.
func NewOutages(log *slog.Logger, work *background.Work) *Outages {
	return &Outages{log: log, work: work, byMessage: map[string]*storeOutage{}}
}

// storeOutage ends when everything that failed works again.
type storeOutage struct {
	failing map[string]bool // e.g. by key
	times   int
}

// RecordFailure records a failure of a kind, which is its log message, for one thing. It returns
// how often that kind has failed since the outage started.
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

// RecordSuccess records a success.
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

// RecordCall records the result of a store call. The end of the member itself is no outage.
func (o *Outages) RecordCall(what, thing string, err error) {
	switch {
	case err == nil:
		o.RecordSuccess(what, thing)
	case !o.work.HasEnded():
		o.RecordFailure(what, thing, err)
	}
}
