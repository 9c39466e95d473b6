package sim

import (
	"time"

	"github.com/troupe-engine/troupe/actors"
)

// host is a machine: what runs on it, and its clock. A dead one does nothing any more, whatever it is
// asked to; a frozen one does it later.
type host struct {
	w      *world
	name   string
	pool   []run
	skew   time.Duration // of its clock, which nobody may rely on
	drift  int64         // of its clock, in 1000
	dead   bool
	frozen bool
	apart  bool // nobody else reaches it, nor does it reach them
	lonely bool // it does not reach the store

	carrying map[string]int // jobs that its carriers are at
	credits  credits        // that its member has told others of
	requests int            // that its member has been asked and has not answered
	curses
}

func (w *world) newHost(name string) *host {
	h := &host{w: w, name: name, skew: time.Duration(w.rng.IntN(1_000_000)) * time.Second,
		carrying: map[string]int{}, credits: credits{}, curses: curses{at: map[string]time.Time{}}}
	w.hosts = append(w.hosts, h)
	return h
}

// forActors is the seam at which production code stands on the world.
func (h *host) forActors() actors.Host {
	return actors.Host{Dispatcher: h, Go: h.background, Clock: h, Park: h.w.park, Probe: h.probe}
}

// put notes that a carrier is done with a job.
func (h *host) put(job string) {
	if h.carrying[job]--; h.carrying[job] == 0 {
		delete(h.carrying, job)
	}
}

func (h *host) runnable() int {
	if h.frozen && !h.dead {
		return 0
	}
	return len(h.pool)
}

func (h *host) add(f func()) {
	h.w.serial++
	h.pool = append(h.pool, run{h.w.serial, f})
}

// Schedule runs a mailbox some time.
func (h *host) Schedule(f func()) {
	h.add(func() {
		if !h.dead {
			f()
		}
	})
}

// Throughput is how many messages a mailbox handles at a time.
func (h *host) Throughput() int { return 1 }

// background runs work that may wait.
func (h *host) background(f func()) { h.w.launch(h, h.name, f) }

// Now is the host's own idea of the time.
func (h *host) Now() time.Time {
	return epoch.Add(h.skew + h.w.now + h.w.now*time.Duration(h.drift)/1000)
}

// AfterFunc calls f in a while.
func (h *host) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if h.drift != 0 && d < 1<<50 { // to what takes weeks it makes no difference
		d = d*1000/time.Duration(1000+h.drift) + 1
	}
	return h.w.after(h, d, func() {
		if !h.dead {
			f()
		}
	})
}

// die is a crash: mailboxes are lost, and what was under way finds nobody to talk to.
func (h *host) die() {
	h.dead, h.frozen = true, false
}
