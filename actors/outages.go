package actors

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// storeOutages are current failures of the store, by log message. The log gets one line when an
// outage starts and one when it ends, however many tries there are.
type storeOutages struct {
	log        *slog.Logger
	hasOutages atomic.Bool
	mu         sync.Mutex
	byMessage  map[string]*storeOutage
}

// Log messages, which identify the kinds of failures.
const (
	notWritten          = "a batch could not be written"
	notRuled            = "who is given a key could not be decided"
	keysNotRead         = "the keys that somebody waits for could not be read from the store"
	notLoaded           = "tasks could not be loaded from the store"
	unfinishedNotRead   = "unfinished tasks could not be read from the store"
	dueNotRead          = "due tasks could not be read from the store"
	externalsNotRead    = "the work outside that is to be looked at could not be read from the store"
	externalsNotWritten = "how far work outside is could not be written"
	jobsNotRead         = "queue jobs could not be read from the store"
	servicesNotRead     = "the services with queue jobs could not be read from the store"
	notCounted          = "statistics could not be written: those of some seconds are lost"
)

// storeOutage ends when everything that failed works again.
type storeOutage struct {
	failing map[string]bool // e.g. by key
	times   int
}

// recordFailure records a failure of a kind, which is its log message, for one thing. It returns
// how often that kind has failed since the outage started.
func (o *storeOutages) recordFailure(what, thing string, err error) (times int) {
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
		o.log.Warn(what+": trying on", "error", err)
	}
	return times
}

// recordSuccess records a success.
func (o *storeOutages) recordSuccess(what, thing string) {
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
		o.log.Info("the store works again", "what", what, "failed", is.times)
	}
}

// recordStoreCall records the result of a store call. The end of the member itself is no outage.
func (m *Member) recordStoreCall(what, thing string, err error) {
	switch {
	case err == nil:
		m.outages.recordSuccess(what, thing)
	case m.ctx.Err() == nil:
		m.outages.recordFailure(what, thing, err)
	}
}
