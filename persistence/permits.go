package persistence

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
)

// Permits stores the limits that apply across members: for each key, the holders that wait for a
// permit or have one. Commits of tasks create and end the rows. Rule gives permits, one decision
// per key at a time on any member. So no limit is exceeded, even if two members believe that they
// own a key.
type Permits interface {
	// Rule makes a decision about a key and returns the rows whose tasks must be notified. These
	// are the rows of this decision and unacknowledged rows of earlier ones, at most
	// PermitsToldAtOnce. An earlier row is repeated after PermitToldMS, or at once with Anew. It
	// returns ErrFenced if the incarnation may not write.
	Rule(ctx context.Context, incarnation string, q PermitQuestion) (Ruling, error)
	// OpenKeys returns keys of the given shards that have waiting rows or unacknowledged decisions,
	// in order after the given key.
	OpenKeys(ctx context.Context, shards ShardSet, after string, limit int) ([]string, error)
	// PermitsOf returns the permits that a task waits for or has, in order of holder and key.
	PermitsOf(ctx context.Context, task string) ([]PermitRow, error)
	// ForgetKeys deletes the state of up to limit keys that have not been requested for a while,
	// and returns how many it deleted.
	ForgetKeys(ctx context.Context, limit int) (int, error)
}

// PermitQuestion is a request to Rule about a key.
type PermitQuestion struct {
	Key  string
	Anew bool // treat all earlier notifications as lost
}

// Ruling is the result of Rule: the rows whose tasks must be notified.
type Ruling struct {
	Given   []PermitRow
	Refused []PermitRow
	Evicted []PermitRow // holders that must make room
	// time when the rate limit allows the next waiting row; 0 if unknown
	Again  int64
	More   bool // another decision may give more permits
	Retold bool // some rows were notified again and may need another notification
}

// Add adds a row to the notifications. An evicted row with an unacknowledged permit is also
// reported as given.
func (r *Ruling) Add(row PermitRow) {
	switch row.State {
	case PermitGiven:
		r.Given = append(r.Given, row)
	case PermitRefused:
		r.Refused = append(r.Refused, row)
	}
	if row.Evicted {
		r.Evicted = append(r.Evicted, row)
	}
}

// PermitRow is a holder that waits for a key or has a permit of it.
type PermitRow struct {
	Task     string
	Holder   string // job id of the attempt, or of the task itself
	Key      string
	Limit    int
	PerMS    int64 // length of the rate's window in milliseconds; 0 means that there is no rate
	Full     string
	Priority int
	Fair     string
	AskedAt  int64
	Turn     string // order among rows with the same AskedAt; ASCII

	State   PermitState
	GivenAt int64 // time when the permit was given; 0 if it was not
	ToldAt  int64 // time of the last notification of the task; used only by stores
	Evicted bool  // the holder must end
	// minimum number of waiting rows before this one, up to MostBefore; set by PermitsOf only
	Before int
}

// PermitState is the progress of a permit.
type PermitState int

// States of permits. Stores keep these values.
const (
	PermitWaits   PermitState = iota
	PermitGiven               // given, not acknowledged by its task
	PermitHeld                // acknowledged by its task
	PermitRefused             // refused, not acknowledged by its task
)

// PermitID identifies a permit of a task.
type PermitID struct{ Holder, Key string }

// PermitChanges are the changes of a commit to permits. A permit that a single commit both requests
// and releases is not requested.
type PermitChanges struct {
	Ask     []PermitRow
	Hold    []PermitID // acknowledged by their task
	Release []PermitID // no longer waited for or held
}

// Released reports whether the commit releases a permit.
func (c *PermitChanges) Released(holder, key string) bool {
	return slices.Contains(c.Release, PermitID{holder, key})
}

// Values of PermitRow.Full for rows that do not wait; they equal those of flow.
const (
	fullRefuse = "refuse"
	fullCancel = "cancel_running"
)

// Bounds of a decision about a key.
const (
	PermitsAtOnce     = 100     // maximum number of waiting rows in one decision
	MostBefore        = 1000    // limit of the number of rows counted before a waiting row
	HastyAtOnce       = 1000    // maximum number of non-waiting rows in one decision
	PermitsToldAtOnce = 1000    // maximum number of rows notified again
	PermitToldMS      = 2_000   // time after which an unacknowledged row is notified again
	KeyForgottenMS    = 600_000 // time after which the state of an unused key is deleted
)

// PermitBook is the input of a decision about a key.
type PermitBook struct {
	Now     int64
	State   KeyState
	Held    int         // number of holders
	Evicted int         // number of evicted holders that have not ended yet
	Waiting []PermitRow // first waiting rows, in the order of InTurn
	Hasty   []PermitRow // first HastyAtOnce rows that do not wait; some may also be in Waiting
	// holders that are not evicted, oldest first; filled only if a row would evict a holder
	Running []PermitRow
}

// KeyState is the stored state of a key.
type KeyState struct {
	Cursor string // PermitRow.Fair of the last row that got a permit
	Begun  string // start times that count for a rate; see rateWindow
}

// PermitVerdict is the result of a decision about a key.
type PermitVerdict struct {
	Given, Refused, Evicted []PermitRow
	State                   KeyState
	Again                   int64
	More                    bool
	IdleAt                  int64 // time after which the state has no effect
}

// Decide gives permits of the key to the next rows while there is room. No row overtakes a waiting
// row, even if that row has a smaller limit.
func (b *PermitBook) Decide() PermitVerdict {
	d := &permitDecision{b: b, v: PermitVerdict{State: b.State, IdleAt: b.Now + KeyForgottenMS},
		window: readWindow(b.State.Begun), held: b.Held, decided: map[PermitID]bool{}}
	d.window.notAfter(b.Now)
	for i := range b.Waiting {
		d.decideWaiting(&b.Waiting[i])
	}
	d.v.More = len(d.v.Given) >= PermitsAtOnce || len(b.Hasty) >= HastyAtOnce
	for i := range b.Hasty {
		d.decideHasty(&b.Hasty[i])
	}
	d.evictHolders()
	d.v.State.Begun = d.window.formatText()
	d.v.IdleAt = wholeMinute(max(d.v.IdleAt, d.window.expiresAt()))
	return d.v
}

// permitDecision is a decision in progress.
type permitDecision struct {
	b       *PermitBook
	v       PermitVerdict
	window  *rateWindow
	held    int
	decided map[PermitID]bool
	cancels int  // number of waiting rows that would evict a holder
	full    bool // a row must wait
}

// hasRoom reports whether there is room for a row. If not, again is the time when there may be
// room; 0 if unknown.
func (d *permitDecision) hasRoom(r *PermitRow) (again int64, room bool) {
	if r.PerMS > 0 {
		return d.window.hasRoom(d.b.Now, r.PerMS, r.Limit)
	}
	return 0, d.held < r.Limit
}

// decideWaiting decides about the next waiting row.
func (d *permitDecision) decideWaiting(r *PermitRow) {
	again, room := d.hasRoom(r)
	d.decided[PermitID{r.Holder, r.Key}] = true
	switch {
	case room && !d.full:
		d.v.Given, d.v.State.Cursor = append(d.v.Given, *r), r.Fair
		if r.PerMS > 0 {
			d.window.addBegin(d.b.Now, r.PerMS)
		} else {
			d.held++
		}
	case r.Full == fullRefuse:
		d.v.Refused = append(d.v.Refused, *r)
	default:
		if !d.full {
			d.full, d.v.Again = true, again
		}
		if r.Full == fullCancel {
			d.cancels++
		}
	}
}

// decideHasty decides about a row that does not wait for a permit.
func (d *permitDecision) decideHasty(r *PermitRow) {
	if d.decided[PermitID{r.Holder, r.Key}] {
		return
	}
	if _, room := d.hasRoom(r); room && !d.full {
		d.v.More = true // there is room for this row after the other rows
		return
	}
	d.v.Refused = append(d.v.Refused, *r)
}

// evictHolders evicts as many holders as waiting rows require.
func (d *permitDecision) evictHolders() {
	if n := min(d.cancels-d.b.Evicted, len(d.b.Running)); n > 0 {
		d.v.Evicted = d.b.Running[:n]
	}
	if d.held > d.b.Held && d.cancels > d.b.Evicted+len(d.v.Evicted) {
		d.v.More = true // some holders that just got a permit must make room
	}
}

// wholeMinute rounds a time up to a full minute, so that a value in a store's index does not change
// with each decision.
func wholeMinute(ms int64) int64 { return (ms + 59_999) / 60_000 * 60_000 }

// InTurn sorts waiting rows of a key into the order in which they get permits. It takes one row of
// each Fair group at a time, starting behind the group of the last permit. Within a group it takes
// the highest priority first, then the oldest request.
func InTurn(rows []PermitRow, cursor string) {
	slices.SortFunc(rows, func(a, b PermitRow) int { return cmp.Or(cmp.Compare(a.Fair, b.Fair), a.compareTurn(&b)) })
	round := map[PermitID]int{}
	last, n := "", 0
	for i := range rows {
		if rows[i].Fair != last {
			last, n = rows[i].Fair, 0
		}
		round[PermitID{rows[i].Holder, rows[i].Key}] = n
		n++
	}
	behind := func(r *PermitRow) int {
		if r.Fair > cursor {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(rows, func(a, b PermitRow) int {
		return cmp.Or(cmp.Compare(round[PermitID{a.Holder, a.Key}], round[PermitID{b.Holder, b.Key}]), cmp.Compare(behind(&a), behind(&b)))
	})
}

// compareTurn compares two rows of the same Fair group.
func (r *PermitRow) compareTurn(other *PermitRow) int {
	return cmp.Or(cmp.Compare(other.Priority, r.Priority), cmp.Compare(r.AskedAt, other.AskedAt), cmp.Compare(r.Turn, other.Turn),
		cmp.Compare(r.Holder, other.Holder))
}

// Precedes reports whether a waiting row comes before another one of the same Fair group.
func Precedes(a, b *PermitRow) bool { return a.compareTurn(b) < 0 }

// rateWindow is the list of start times that count for a rate. Within the length of the window,
// there are no more starts than the limit. Starts at almost the same time share a slot, and all
// count as if at its last time. So the count is never too low.
type rateWindow struct {
	spanMS int64 // longest window of a row, in milliseconds
	slots  []windowSlot
}

type windowSlot struct {
	first, last int64
	n           int
}

// slotsPerWindow is the number of parts of a window. Above maxSlots, slots that are finer than any
// row needs are merged. The list can hold windows of two lengths.
const (
	slotsPerWindow = 256
	maxSlots       = 4 * slotsPerWindow
)

// hasRoom reports whether one more start fits. If not, again is the time when it fits.
func (w *rateWindow) hasRoom(now, perMS int64, limit int) (again int64, ok bool) {
	n := 0
	for i := len(w.slots) - 1; i >= 0 && w.slots[i].last > now-perMS; i-- {
		if n += w.slots[i].n; n >= limit {
			return w.slots[i].last + perMS, false
		}
	}
	return 0, true
}

func (w *rateWindow) addBegin(now, perMS int64) {
	w.spanMS = max(w.spanMS, perMS)
	w.slots = slices.DeleteFunc(w.slots, func(s windowSlot) bool { return s.last <= now-w.spanMS })
	if n := len(w.slots); n > 0 && now-w.slots[n-1].first <= perMS/slotsPerWindow {
		s := &w.slots[n-1]
		s.last, s.n = max(s.last, now), s.n+1
		return
	}
	w.slots = append(w.slots, windowSlot{now, now, 1})
	if len(w.slots) > maxSlots {
		w.mergeSlots(now - perMS)
	}
}

// mergeSlots merges slots up to the given time to the precision of the longest window. These slots
// only count for windows that are longer than the current one.
func (w *rateWindow) mergeSlots(before int64) {
	kept := w.slots[:1]
	for _, s := range w.slots[1:] {
		if last := &kept[len(kept)-1]; s.last <= before && s.last-last.first <= w.spanMS/slotsPerWindow {
			last.last, last.n = s.last, last.n+s.n
			continue
		}
		kept = append(kept, s)
	}
	w.slots = kept
}

// notAfter moves start times later than now to now, which occur after the clock was set back.
func (w *rateWindow) notAfter(now int64) {
	for i := range w.slots {
		s := &w.slots[i]
		s.first, s.last = min(s.first, now), min(s.last, now)
	}
}

// expiresAt returns the time after which no start counts.
func (w *rateWindow) expiresAt() int64 {
	if n := len(w.slots); n > 0 {
		return w.slots[n-1].last + w.spanMS
	}
	return 0
}

func (w *rateWindow) formatText() string {
	if len(w.slots) == 0 {
		return ""
	}
	b := strconv.AppendInt(nil, w.spanMS, 10)
	for _, s := range w.slots {
		b = strconv.AppendInt(append(b, ' '), s.first, 10)
		b = strconv.AppendInt(append(b, '+'), s.last-s.first, 10)
		b = strconv.AppendInt(append(b, '*'), int64(s.n), 10)
	}
	return string(b)
}

// readWindow parses the output of formatText. It ignores slots that it cannot parse.
func readWindow(text string) *rateWindow {
	w := &rateWindow{}
	span, rest, _ := strings.Cut(text, " ")
	w.spanMS, _ = strconv.ParseInt(span, 10, 64)
	for part := range strings.FieldsSeq(rest) {
		first, after, _ := strings.Cut(part, "+")
		length, n, _ := strings.Cut(after, "*")
		var s windowSlot
		var ms int64
		var err [3]error
		s.first, err[0] = strconv.ParseInt(first, 10, 64)
		ms, err[1] = strconv.ParseInt(length, 10, 64)
		s.n, err[2] = strconv.Atoi(n)
		if err == [3]error{} {
			s.last = s.first + ms
			w.slots = append(w.slots, s)
		}
	}
	return w
}
