package sim

import (
	"time"

	"github.com/troupe-engine/troupe/actors"
)

// host is a machine: what runs on it, and its clock. A dead one does nothing any more, whatever it
// is asked to; a frozen one does it later.
type host struct {
	w            *simWorld
	name         string
	pool         []pendingRun
	skew         time.Duration // of its clock, which nobody may rely on
	drift        int64         // of its clock, in 1000
	dead         bool
	frozen       bool
	cutFromPeers bool // nobody else reaches it, nor does it reach them
	cutFromStore bool // it does not reach the store

	carrying map[string]int // jobs that its carriers are at
	credits  creditCounts   // that its member has told others of
	requests int            // that its member has been asked and has not answered
	hostFaults
}

func (w *simWorld) newHost(name string) *host {
	h := &host{w: w, name: name, skew: time.Duration(w.rng.IntN(1_000_000)) * time.Second,
		carrying: map[string]int{}, credits: creditCounts{}, hostFaults: hostFaults{at: map[string]time.Time{}}}
	w.hosts = append(w.hosts, h)
	return h
}

// forActors is the seam at which production code stands on the world.
func (h *host) forActors() actors.Host {
	return actors.Host{Dispatcher: h, Go: h.runBackground, Clock: h, Park: h.w.parkUntil, Probe: h.maybeCrash}
}

// finishJob notes that a carrier is done with a job.
func (h *host) finishJob(job string) {
	if h.carrying[job]--; h.carrying[job] == 0 {
		delete(h.carrying, job)
	}
}

func (h *host) countRunnable() int {
	if h.frozen && !h.dead {
		return 0
	}
	return len(h.pool)
}

func (h *host) addRun(f func()) {
	h.w.serial++
	h.pool = append(h.pool, pendingRun{h.w.serial, f})
}

// Schedule runs a mailbox some time.
func (h *host) Schedule(f func()) {
	h.addRun(func() {
		if !h.dead {
			f()
		}
	})
}

// Throughput is how many messages a mailbox handles at a time.
func (h *host) Throughput() int { return 1 }

// runBackground runs work that may wait.
func (h *host) runBackground(f func()) { h.w.startCoroutine(h, h.name, f) }

// Now is the host's own idea of the time.
func (h *host) Now() time.Time {
	return epoch.Add(h.skew + h.w.now + h.w.now*time.Duration(h.drift)/1000)
}

// AfterFunc calls f in a while.
func (h *host) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if h.drift != 0 && d < 1<<50 { // to what takes weeks it makes no difference
		d = d*1000/time.Duration(1000+h.drift) + 1
	}
	return h.w.callAfter(h, d, func() {
		if !h.dead {
			f()
		}
	})
}

// crashHost is a crash: mailboxes are lost, and what was under way finds nobody to talk to.
func (h *host) crashHost() {
	h.dead, h.frozen = true, false
}
