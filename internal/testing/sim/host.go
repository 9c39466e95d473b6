package sim

import (
	"time"

	"github.com/troupe-engine/troupe/actors"
)

// host is a machine with its work and clock. A dead host runs no work; a frozen host runs its work
// later.
type host struct {
	w            *simWorld
	name         string
	pool         []pendingRun
	skew         time.Duration // constant error of its clock, on which no code may rely
	drift        int64         // drift of its clock in 1/1000
	dead         bool
	frozen       bool
	cutFromPeers bool // whether the host cannot exchange messages with other hosts
	cutFromStore bool // whether the host cannot reach the store

	carrying map[string]int // jobs that its carriers are carrying out
	credits  creditCounts   // credits that its member has published
	requests int            // unanswered requests to its member
	hostFaults
}

func (w *simWorld) newHost(name string) *host {
	h := &host{w: w, name: name, skew: time.Duration(w.rng.IntN(1_000_000)) * time.Second,
		carrying: map[string]int{}, credits: creditCounts{}, hostFaults: hostFaults{at: map[string]time.Time{}}}
	w.hosts = append(w.hosts, h)
	return h
}

// forActors returns the environment through which production code uses the world.
func (h *host) forActors() actors.Host {
	return actors.Host{Dispatcher: h, Go: h.runBackground, Clock: h, Park: h.w.parkUntil, Probe: h.maybeCrash}
}

// finishJob records that a carrier has finished a job.
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

// Schedule runs a mailbox at some later step.
func (h *host) Schedule(f func()) {
	h.addRun(func() {
		if !h.dead {
			f()
		}
	})
}

// Throughput is the number of messages a mailbox handles per run.
func (h *host) Throughput() int { return 1 }

// runBackground runs work that may wait.
func (h *host) runBackground(f func()) { h.w.startCoroutine(h, h.name, f) }

// Now returns the time by the host's own clock.
func (h *host) Now() time.Time {
	return epoch.Add(h.skew + h.w.now + h.w.now*time.Duration(h.drift)/1000)
}

// AfterFunc calls f after d.
func (h *host) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if h.drift != 0 && d < 1<<50 { // drift does not matter for delays of weeks
		d = d*1000/time.Duration(1000+h.drift) + 1
	}
	return h.w.callAfter(h, d, func() {
		if !h.dead {
			f()
		}
	})
}

// crashHost crashes the host: its mailboxes are lost, and its pending work has no effect.
func (h *host) crashHost() {
	h.dead, h.frozen = true, false
}
