// Package garbage sets how much garbage a member lets gather before it is collected.
//
// A member's heap is small and its garbage plentiful: letting twice as much gather as is in use
// saves a tenth of the CPU of a busy member and costs a few tens of megabytes. Where much is in use
// that would cost hundreds. So no more gathers than a bound, but at least half of what is in use,
// that collecting does not take all the time there is.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	most   = 200       // percent of what is in use
	least  = 50        // percent
	spare  = 128 << 20 // bytes
	inUse  = "/gc/heap/live:bytes"
	coarse = 10 // percent: less than so much is no reason to set it anew
)

// Bound follows what is in use, after each collection, from now on. GOGC, when set, goes before it.
func Bound() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(most)
	follow()
}

// follow has a collection set the percent for the next one: it finds an object that nobody refers
// to.
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

// percentFor is how much garbage may gather where so many bytes are in use.
func percentFor(live uint64) int {
	return int(min(max(spare*100/max(live, 1), least), most))
}
