package actors

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// storeOutages are what the store does not do for the moment, by what is said of it. That is said
// when it begins and when it is over, however often it is tried meanwhile.
type storeOutages struct {
	log        *slog.Logger
	hasOutages atomic.Bool
	mu         sync.Mutex
	byMessage  map[string]*storeOutage
}

// What is said of them.
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

// storeOutage is over when all works that has failed.
type storeOutage struct {
	failing map[string]bool // e.g. keys
	times   int
}

// recordFailure notes that something failed, which is what is said of it, and of which thing of its
// kind. It answers how often that kind has failed since the outage began.
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

// recordSuccess notes that something has worked.
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

// recordStoreCall notes how it went. That the member itself ends is no outage.
func (m *Member) recordStoreCall(what, thing string, err error) {
	switch {
	case err == nil:
		m.outages.recordSuccess(what, thing)
	case m.ctx.Err() == nil:
		m.outages.recordFailure(what, thing, err)
	}
}
