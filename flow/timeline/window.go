package timeline

import (
	"cmp"
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// Window is the requested part of a timeline.
type Window struct {
	From, To int64 // Unix milliseconds; 0 for the beginning or the end
	Now      int64 // current time, for active visits
	Bins     int   // maximum number of bins, for a lane with too many attempts to list
}

const (
	// MaxLanes is the maximum number of lanes in the output. maxToldAttempts and maxToldBins are
	// limits for all lanes together.
	MaxLanes        = 2000
	maxLaneAttempts = 200 // per lane
	maxToldAttempts = 20_000
	maxToldBins     = 20_000
)

// Told is the output for a window.
type Told struct {
	From, To int64 // period of the output
	Lanes    []LaneTold
	Critical []int // indexes of the lanes that delayed the end of the scope, in order
	Pauses   []Wait
	LeftOut  int // number of dropped lanes
}

// LaneTold is a lane with its attempts, or with counts of them over time.
type LaneTold struct {
	*Lane
	Attempts []Attempt
	Bins     []Bin
	BinMS    int64
}

// Bin is a period with the number of attempts that were active in it, and the number of failed
// attempts.
type Bin struct {
	At              int64
	Running, Failed int
}

// Tell returns the output for a window. The output shares its lanes with the timeline, so it must
// not be used after the next Add.
func (t *Timeline) Tell(w Window) Told {
	end := cmp.Or(t.Ended, max(w.Now, t.Begun))
	told := Told{From: max(w.From, t.Begun), To: end, LeftOut: t.leftOut, Lanes: []LaneTold{},
		Critical: []int{}, Pauses: t.pausesIn(w, end)}
	if w.To > 0 {
		told.To = min(w.To, end)
	}
	told.To = max(told.To, told.From)
	critical := t.criticalLanes(end)
	for _, l := range t.lanes {
		switch {
		case l.Entered > told.To || cmp.Or(l.Ended, end) < told.From:
		case len(told.Lanes) == MaxLanes:
			told.LeftOut++
		default:
			if critical[l] {
				told.Critical = append(told.Critical, len(told.Lanes))
			}
			told.Lanes = append(told.Lanes, LaneTold{Lane: l})
		}
	}
	t.fillAttempts(&told, w.Bins, end)
	return told
}

// pausesIn returns the pauses in a window.
func (t *Timeline) pausesIn(w Window, end int64) []Wait {
	list := []Wait{}
	for _, p := range t.pauses {
		if cmp.Or(p.End, end) >= max(w.From, t.Begun) && (w.To == 0 || p.Start <= w.To) {
			list = append(list, p)
		}
	}
	return list
}

// fillAttempts adds attempts to each lane, or bins to a lane with many attempts.
func (t *Timeline) fillAttempts(told *Told, bins int, end int64) {
	if len(told.Lanes) == 0 {
		return
	}
	most, many := min(maxLaneAttempts, max(maxToldAttempts/len(told.Lanes), 1)), 0
	for i := range told.Lanes {
		l := &told.Lanes[i]
		for j := range l.attempts {
			if a := &l.attempts[j]; a.Start <= told.To && cmp.Or(a.End, end) >= told.From {
				if l.Attempts = append(l.Attempts, *a); len(l.Attempts) > most {
					l.Attempts = nil
					l.Bins = []Bin{}
					many++
					break
				}
			}
		}
	}
	for i := range told.Lanes {
		if l := &told.Lanes[i]; l.Bins != nil {
			l.fillBins(told, max(min(bins, maxToldBins/many), 1), end)
		}
	}
}

// fillBins counts the attempts of a lane in equal periods of the visible part. Periods without
// attempts are omitted.
func (l *LaneTold) fillBins(told *Told, bins int, end int64) {
	from, to := max(l.Entered, told.From), min(cmp.Or(l.Ended, end), told.To)
	width := max((to-from+int64(bins))/int64(bins), 1)
	running, failed := make([]int, bins+1), make([]int, bins)
	in := func(at int64) int { return int(min(max((at-from)/width, 0), int64(bins-1))) }
	for i := range l.attempts {
		a := &l.attempts[i]
		ended := cmp.Or(a.End, end)
		if a.Start > to || ended < from {
			continue
		}
		running[in(a.Start)]++
		running[in(ended)+1]--
		if a.End > 0 && a.End <= to && a.State != flow.AttemptOK && a.State != flow.AttemptCanceled {
			failed[in(a.End)]++
		}
	}
	l.BinMS = width
	under := 0
	for i := range failed {
		if under += running[i]; under > 0 || failed[i] > 0 {
			l.Bins = append(l.Bins, Bin{At: from + int64(i)*width, Running: under, Failed: failed[i]})
		}
	}
}

// criticalLanes returns the lanes that delayed the end of the scope: the lane that ended last, the
// lane whose end allowed it to start, and so on.
func (t *Timeline) criticalLanes(end int64) map[*Lane]bool {
	path := map[*Lane]bool{}
	visits := map[string][]*Lane{}
	var last *Lane
	for _, l := range t.lanes {
		visits[l.Node] = append(visits[l.Node], l)
		if last == nil || cmp.Or(l.Ended, end) > cmp.Or(last.Ended, end) {
			last = l
		}
	}
	if last == nil {
		return path
	}
	if t.plan == nil || t.plan.Dag == nil {
		for _, l := range t.lanes { // each lane follows the lane before it
			path[l] = true
		}
		return path
	}
	for l := last; l != nil && !path[l]; {
		path[l] = true
		l = t.latestBefore(l.Node, l.Entered, visits, map[string]bool{})
	}
	return path
}

// latestBefore returns the lane that a node waited for longest. For a dependency that never
// started, the dependencies of that node count instead.
func (t *Timeline) latestBefore(node string, entered int64, visits map[string][]*Lane, seen map[string]bool) *Lane {
	n := t.plan.Nodes[node]
	if n == nil || n.Dag == nil || seen[node] {
		return nil
	}
	seen[node] = true
	var latest *Lane
	for _, i := range n.Dag.Deps {
		key := t.plan.Dag.List[i].Key
		found := lastBefore(visits[key], entered)
		if found == nil && t.endedUnbegun[key] > 0 {
			found = t.latestBefore(key, entered, visits, seen)
		}
		if found != nil && (latest == nil || found.Ended > latest.Ended) {
			latest = found
		}
	}
	return latest
}

// lastBefore returns the last visit that had ended at a time, or nil.
func lastBefore(visits []*Lane, at int64) *Lane {
	for _, l := range slices.Backward(visits) {
		if l.Ended > 0 && l.Ended <= at {
			return l
		}
	}
	return nil
}
