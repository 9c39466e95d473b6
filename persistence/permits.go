package persistence

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
)

// Permits is the store's side of limits that span members: who waits for a key, and who has it.
// Rows are made and ended by the commits of tasks; that somebody is given a key is decided here,
// one decision about a key after the other, whoever asks for it: so no limit is exceeded, even when
// two members believe that they own a key.
type Permits interface {
	// Rule decides about a key, and answers with those who have to hear of it: those of this
	// decision, and up to PermitsToldAtOnce of earlier ones who have not answered although they
	// were told PermitToldMS ago, or, with Anew, at any time. ErrFenced when the incarnation may
	// not write.
	Rule(ctx context.Context, incarnation string, q PermitQuestion) (Ruling, error)
	// OpenKeys lists keys of shards for which somebody waits, or has not heard that he need not, in
	// order after a given one.
	OpenKeys(ctx context.Context, shards ShardSet, after string, limit int) ([]string, error)
	// PermitsOf lists what a task waits for or has, in order of holder and key.
	PermitsOf(ctx context.Context, task string) ([]PermitRow, error)
	// ForgetKeys deletes what is remembered of up to limit keys that nobody has asked for in a
	// while, and tells of how many.
	ForgetKeys(ctx context.Context, limit int) (int, error)
}

// PermitQuestion is about a key.
type PermitQuestion struct {
	Key  string
	Anew bool // nobody knows who has heard
}

// Ruling is who has to hear what.
type Ruling struct {
	Given   []PermitRow
	Refused []PermitRow
	Evicted []PermitRow // who has to make room
	Again   int64       // when a rate has room again for whoever is next; 0 = that is up to others
	More    bool        // there may be more to decide about
	Retold  bool        // some were told again; they may have to be once more
}

// Add adds somebody who has to hear something: whoever is to end before he has answered hears that
// he was given the key first.
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

// PermitRow is somebody who waits for a key, or has it.
type PermitRow struct {
	Task     string
	Holder   string // job id of the attempt, or of the task itself
	Key      string
	Limit    int
	PerMS    int64 // of a rate; 0 = the key is held
	Full     string
	Priority int
	Fair     string
	AskedAt  int64
	Turn     string // among those who ask at the same time; ASCII

	State   PermitState
	GivenAt int64 // 0 = it was not
	ToldAt  int64 // when its task was last told of that; stores alone know
	Evicted bool  // it is to end
	Before  int   // PermitsOf: how many of those who wait come before it, at least; no more than MostBefore are counted
}

// PermitState says how far somebody is.
type PermitState int

// States of permits. They are kept in stores.
const (
	PermitWaits   PermitState = iota
	PermitGiven               // and its task has not answered
	PermitHeld                // its task knows
	PermitRefused             // and its task has not answered
)

// PermitID names a permit of a task.
type PermitID struct{ Holder, Key string }

// PermitChanges are what a commit changes. What is asked for and released at once is not asked for.
type PermitChanges struct {
	Ask     []PermitRow
	Hold    []PermitID // their task knows of them
	Release []PermitID // nobody waits for them, or has them, any more
}

// Released reports whether a permit is.
func (c *PermitChanges) Released(holder, key string) bool {
	return slices.Contains(c.Release, PermitID{holder, key})
}

// Words of PermitRow.Full that say not to wait; they are those of flow.
const (
	fullRefuse = "refuse"
	fullCancel = "cancel_running"
)

// Bounds of a decision about a key.
const (
	PermitsAtOnce     = 100     // how many of those who wait it is about
	MostBefore        = 1000    // how many are counted before somebody
	HastyAtOnce       = 1000    // how many of those who do not wait it is about
	PermitsToldAtOnce = 1000    // how many are told again
	PermitToldMS      = 2_000   // after how long somebody is told again who has not answered
	KeyForgottenMS    = 600_000 // for how long a key is remembered that nobody asks for
)

// PermitBook is what a decision about a key is made of.
type PermitBook struct {
	Now     int64
	State   KeyState
	Held    int         // how many hold it
	Evicted int         // how many of those are to end
	Waiting []PermitRow // the first of those who wait, in the order of InTurn
	Hasty   []PermitRow // the first HastyAtOnce of those who do not wait, some of whom are in Waiting
	Running []PermitRow // holders who are not evicted, the oldest first, if somebody wants one to be
}

// KeyState is what is remembered of a key.
type KeyState struct {
	Cursor string // whose turn was the last one: a PermitRow.Fair
	Begun  string // when those began whom a rate counts; see rateWindow
}

// PermitVerdict is such a decision.
type PermitVerdict struct {
	Given, Refused, Evicted []PermitRow
	State                   KeyState
	Again                   int64
	More                    bool
	IdleAt                  int64 // from when on the state says nothing
}

// Decide gives the key to those who are next as long as there is room. Nobody overtakes one who
// waits: his limit may be the smaller one.
func (b *PermitBook) Decide() PermitVerdict {
	d := &permitDecision{b: b, v: PermitVerdict{State: b.State, IdleAt: b.Now + KeyForgottenMS}, window: readWindow(b.State.Begun), held: b.Held, decided: map[PermitID]bool{}}
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

// permitDecision is one decision under way.
type permitDecision struct {
	b       *PermitBook
	v       PermitVerdict
	window  *rateWindow
	held    int
	decided map[PermitID]bool
	cancels int  // how many of those who wait want another one to end
	full    bool // somebody waits
}

// hasRoom reports whether there is some for somebody, or when there may be.
func (d *permitDecision) hasRoom(r *PermitRow) (again int64, room bool) {
	if r.PerMS > 0 {
		return d.window.hasRoom(d.b.Now, r.PerMS, r.Limit)
	}
	return 0, d.held < r.Limit
}

// decideWaiting is about the next of those who wait.
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

// decideHasty is about one who does not wait.
func (d *permitDecision) decideHasty(r *PermitRow) {
	if d.decided[PermitID{r.Holder, r.Key}] {
		return
	}
	if _, room := d.hasRoom(r); room && !d.full {
		d.v.More = true // there are some before him, and a place for him, too
		return
	}
	d.v.Refused = append(d.v.Refused, *r)
}

// evictHolders ends as many of those who have the key as those who wait want.
func (d *permitDecision) evictHolders() {
	if n := min(d.cancels-d.b.Evicted, len(d.b.Running)); n > 0 {
		d.v.Evicted = d.b.Running[:n]
	}
	if d.held > d.b.Held && d.cancels > d.b.Evicted+len(d.v.Evicted) {
		d.v.More = true // of those who have been given it just now some make room
	}
}

// wholeMinute rounds a time up: what is in an index of a store is not to change with each decision.
func wholeMinute(ms int64) int64 { return (ms + 59_999) / 60_000 * 60_000 }

// InTurn puts those who wait for a key in the order in which they are given it: of each Fair one,
// from behind the last one on, and of these the highest priority and then the one who has asked
// first; then of each the next.
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

// compareTurn is the order among those of the same Fair.
func (r *PermitRow) compareTurn(other *PermitRow) int {
	return cmp.Or(cmp.Compare(other.Priority, r.Priority), cmp.Compare(r.AskedAt, other.AskedAt), cmp.Compare(r.Turn, other.Turn),
		cmp.Compare(r.Holder, other.Holder))
}

// Precedes reports whether one who waits comes before another one of the same Fair.
func Precedes(a, b *PermitRow) bool { return a.compareTurn(b) < 0 }

// rateWindow is when those began whom a rate counts: in no stretch of time of its length do more
// begin than its limit. Those who begin at almost the same time are counted together, as if all had
// begun with the last of them: never too few are counted.
type rateWindow struct {
	spanMS int64 // the longest time that somebody has asked for
	slots  []windowSlot
}

type windowSlot struct {
	first, last int64
	n           int
}

// slotsPerWindow is into how many parts a time is divided, and maxSlots how many are kept before
// those are made fewer that are divided more finely than anybody needs: there are times of two
// lengths in it.
const (
	slotsPerWindow = 256
	maxSlots       = 4 * slotsPerWindow
)

// hasRoom reports whether one more may begin, or when.
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

// mergeSlots counts together those who count for a longer time than the present one only, as if it
// had been asked for by that.
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

// notAfter has those begin now who have begun later than that: the clock was put back since.
func (w *rateWindow) notAfter(now int64) {
	for i := range w.slots {
		s := &w.slots[i]
		s.first, s.last = min(s.first, now), min(s.last, now)
	}
}

// expiresAt is when nothing of it counts any more.
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

// readWindow is the inverse of text. What cannot be read counts nothing.
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
