// Package garbage controls how much garbage a member accumulates before a collection.
//
// A member has a small heap and much garbage. Accumulating twice the live heap saves a tenth of the
// CPU time of a busy member and costs a few tens of megabytes. With a large live heap it would cost
// hundreds. So the garbage is bounded, but at least half of the live heap, because otherwise
// collections would take all the time.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	most   = 200       // percent of the live heap
	least  = 50        // percent
	spare  = 128 << 20 // bytes
	inUse  = "/gc/heap/live:bytes"
	coarse = 10 // percent: smaller changes are not applied
)

// Bound bounds the garbage from now on, by adapting the GC percentage to the live heap after each
// collection. If GOGC is set, it does nothing.
func Bound() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(most)
	follow()
}

// follow adjusts the limit after each collection. The cleanup of an unreachable object signals the
// collection.
var follow = sync.OnceFunc(func() { watchCycles(&gcWatcher{percent: most}) })

type gcWatcher struct{ percent int }

func watchCycles(w *gcWatcher) {
	runtime.AddCleanup(&struct{ _ *gcWatcher }{w}, func(w *gcWatcher) {
		w.adjustPercent()
		watchCycles(w)
	}, w)
}

func (w *gcWatcher) adjustPercent() {
	sample := []metrics.Sample{{Name: inUse}}
	metrics.Read(sample)
	percent := percentFor(sample[0].Value.Uint64())
	if percent <= w.percent-coarse || percent >= w.percent+coarse {
		w.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentFor returns the garbage percentage for a live heap of that many bytes.
func percentFor(live uint64) int {
	return int(min(max(spare*100/max(live, 1), least), most))
}
