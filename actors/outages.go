package actors

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// outages are what the store does not do for the moment, by what is said of it. That is said when it begins and when it is over,
// however often it is tried meanwhile.
type outages struct {
	log  *slog.Logger
	some atomic.Bool
	mu   sync.Mutex
	of   map[string]*outage
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

// outage is over when all works that has failed.
type outage struct {
	failing map[string]bool // e.g. keys
	times   int
}

// fails notes that something failed, which is what is said of it, and of which thing of its kind. It answers how often that kind has failed since
// the outage began.
func (o *outages) fails(what, thing string, err error) (times int) {
	o.mu.Lock()
	is := o.of[what]
	if is == nil {
		is = &outage{failing: map[string]bool{}}
		o.of[what] = is
		o.some.Store(true)
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

// works notes that something has worked.
func (o *outages) works(what, thing string) {
	if !o.some.Load() {
		return
	}
	o.mu.Lock()
	is := o.of[what]
	if is != nil {
		delete(is.failing, thing)
	}
	over := is != nil && len(is.failing) == 0
	if over {
		delete(o.of, what)
		o.some.Store(len(o.of) > 0)
	}
	o.mu.Unlock()
	if over {
		o.log.Info("the store works again", "what", what, "failed", is.times)
	}
}

// tried notes how it went. That the member itself ends is no outage.
func (m *Member) tried(what, thing string, err error) {
	switch {
	case err == nil:
		m.outages.works(what, thing)
	case m.ctx.Err() == nil:
		m.outages.fails(what, thing, err)
	}
}
