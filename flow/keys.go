package flow

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Keys are what a node's attempts, or a whole task, have to be given before they go on, so that
// never too many of a key are under way in the whole cluster.
type Keys struct {
	Concurrency *KeyLimit // how many at once; nil = any
	Rate        *KeyLimit // how many begin in a time; nil = any
	Priority    KeyText   // among those that wait for the same key, the higher the sooner
	PerUnit     bool      // what they say differs from unit to unit
}

// KeyLimit is a limit for each key.
type KeyLimit struct {
	Name  string // whoever names it shares it; "" = it is the node's, or the flow's, alone
	Key   KeyText
	Fair  KeyText // of those that wait, each of these has its turn
	Limit int
	PerMS int64 // of a rate
	Full  WhenFull
}

// KeyText is a reference, or a text that means itself; "" is the same key for all.
type KeyText struct {
	Text string
	Ref  expr.Ref
	From KeySource
}

// KeySource says what the reference of a key looks into.
type KeySource uint8

// Sources of keys. Item is that of a unit, Run what a dag works on; a Ref of either looks into its
// input.
const (
	KeyFromEnv KeySource = iota
	KeyFromItem
	KeyFromRun
)

// WhenFull says what happens to somebody for whom a key has no place.
type WhenFull string

// Words of when_full.
const (
	FullQueue  WhenFull = ""               // he waits
	FullRefuse WhenFull = "refuse"         // he fails
	FullCancel WhenFull = "cancel_running" // the oldest one is canceled and makes room
)

// MaxPriority bounds priorities on both sides of 0.
const MaxPriority = 100

// Permit is what an attempt, or a task, asks the owner of a key for.
type Permit struct {
	Key      string   `json:"k"` // with what it limits and whose key it is in front
	Limit    int      `json:"l"`
	PerMS    int64    `json:"m,omitempty"` // of a rate; 0 = it is held until the attempt, or the task, is over
	Full     WhenFull `json:"w,omitempty"`
	Priority int      `json:"p,omitempty"`
	Fair     string   `json:"f,omitempty"`
}

// Permits are those of an attempt or a task, in the order in which they are asked for.
type Permits struct {
	List    []Permit
	Got     int   // how many it has been given
	AskedAt int64 // for the one that it waits for
}

// Waits reports whether there is one that has yet to be given.
func (p *Permits) Waits() bool { return p != nil && p.Got < len(p.List) }

// Next is the one that it waits for.
func (p *Permits) Next() *Permit { return &p.List[p.Got] }

// isAwaiting reports whether it waits for a key.
func (p *Permits) isAwaiting(key string) bool { return p.Waits() && p.Next().Key == key }

// isHolding reports whether it has a key that it keeps.
func (p *Permits) isHolding(key string) bool {
	for i := 0; p != nil && i < p.Got; i++ {
		if p.List[i].Key == key && p.List[i].PerMS == 0 {
			return true
		}
	}
	return false
}

// appendReleases adds that whoever has asked for permits, or has some, is over.
func (p *Permits) appendReleases(effects []Effect, a Address) []Effect {
	for i := 0; p != nil && i < min(p.Got+1, len(p.List)); i++ {
		if i == p.Got || p.List[i].PerMS == 0 {
			effects = append(effects, Release{Address: a, Key: p.List[i].Key})
		}
	}
	return effects
}

// appendGot adds what follows from the permit that was given last: it is kept, or, of a rate, used
// up.
func (p *Permits) appendGot(effects []Effect, a Address) []Effect {
	got := &p.List[p.Got-1]
	if got.PerMS > 0 {
		return append(effects, Release{a, got.Key, true})
	}
	return append(effects, Held{a, got.Key})
}

// decodePermits reads those of an event; nil = none.
func decodePermits(e *Event) []Permit {
	if len(e.Permits) == 0 {
		return nil
	}
	var list []Permit
	if json.Unmarshal(e.Permits, &list) != nil {
		return nil
	}
	return list
}

// Kinds of permits, in front of their keys. What a task holds and what its jobs hold are never the
// same: a task that has its own may wait for those of its jobs, and jobs wait for nobody who could
// wait for them.
const (
	tasksKey = "tasks:"
	jobsKey  = "jobs:"
	rateKey  = "rate:"
)

// encodePermits makes an event's list of what a node or a flow asks for. Place is whose keys they
// are that have no name.
func (k *Keys) encodePermits(kind, place string, value func(*KeyText) json.RawMessage) json.RawMessage {
	priority := 0
	if k.Priority.Text != "" {
		priority = priorityOf(value(&k.Priority))
	}
	list := make([]Permit, 0, 2)
	add := func(kind string, l *KeyLimit) {
		if l == nil {
			return
		}
		name := l.Name
		if name == "" {
			name = place
		}
		p := Permit{Limit: l.Limit, PerMS: l.PerMS, Full: l.Full, Priority: priority, Key: keyOf(kind+name, ":", keyText(value, &l.Key))}
		if l.Fair.Text != "" {
			p.Fair = keyOf("", "", keyText(value, &l.Fair))
		}
		list = append(list, p)
	}
	add(kind, k.Concurrency)
	add(rateKey, k.Rate)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(list); err != nil {
		panic(err) // texts and numbers always have a JSON
	}
	return bytes.TrimSpace(b.Bytes())
}

// keyText is what a key's text means: a string as it is, anything else as JSON.
func keyText(value func(*KeyText) json.RawMessage, k *KeyText) string {
	if k.Text == "" {
		return ""
	}
	v := value(k)
	if text, ok := expr.String(v); ok && IsName(text) {
		return text // else the spelling tells it from others that no store could
	}
	return string(expr.Compact(orNull(v)))
}

// maxKey is how long a key may be: a longer one is cut, and told from others by a hash.
const maxKey = 400

// keyOf puts a key together that every store can keep.
func keyOf(name, between, value string) string {
	key := name
	if value != "" {
		key += between + value
	}
	if len(key) > maxKey {
		hash := sha256.Sum256([]byte(key))
		key = key[:maxKey-40] + "…" + hex.EncodeToString(hash[:16])
	}
	return strings.ReplaceAll(strings.ToValidUTF8(key, "\uFFFD"), "\x00", "\uFFFD")
}

// priorityOf reads a priority: what is no number counts as 0, what is too large as the largest
// there is.
func priorityOf(v json.RawMessage) int {
	f, ok := expr.Number(v)
	if !ok || math.IsNaN(f) {
		return 0
	}
	return int(max(-MaxPriority, min(f, MaxPriority)))
}

// unitPermits are what the attempts of a unit ask for at this moment.
func (st *Step) unitPermits(p *Plan, unit int) json.RawMessage {
	return st.Node.Keys.encodePermits(jobsKey, p.FlowID+"/"+st.Address().Step(), func(k *KeyText) json.RawMessage {
		switch k.From {
		case KeyFromItem:
			return st.scope.expandValue(k.Ref.Resolve(st.scope.inputEnv(st.itemOf(unit))))
		case KeyFromRun:
			return st.scope.expandValue(k.Ref.Resolve(st.scope.inputEnv(st.runFor())))
		}
		return st.scope.expandValue(k.Ref.Resolve(st.scope.referenceEnv(st.Params, st.unitInput(unit))))
	})
}

// itemOf is what a unit of many is about.
func (st *Step) itemOf(unit int) json.RawMessage {
	switch st.Node.Kind {
	case KindForeach:
		return st.unitInput(unit)
	case KindFanout:
		return orNull(st.fanoutItem(unit))
	}
	return null
}

// runFor is what the step's dag works on, or, in graph mode, what the step sees as its params.
func (st *Step) runFor() json.RawMessage {
	if st.Node.Dag != nil {
		return st.scope.runOf(st.Node)
	}
	return orNull(st.Params)
}

// taskPermits are what the task asks for before its first node; nil = nothing.
func (p *Plan) taskPermits(params json.RawMessage) json.RawMessage {
	if p.Keys == nil {
		return nil
	}
	root := &Scope{Plan: p.Root}
	return p.Keys.encodePermits(tasksKey, p.FlowID, func(k *KeyText) json.RawMessage {
		env := root.inputEnv(params)
		env.Params = params
		return root.expandValue(k.Ref.Resolve(env))
	})
}

// holderAddress is the place of the task itself among those that hold permits: each time it begins
// it asks anew.
func (s *State) holderAddress() Address { return Address{Attempt: s.Asked} }

// handleGranted goes on with what has been given its permit, or ends it because the key is full.
// What does not wait for it any longer stays as it is.
func (d *decider) handleGranted(c Granted) {
	if c.Node == "" {
		d.taskGranted(c)
		return
	}
	st, u := d.s.findAttempt(c.Address)
	switch {
	case d.s.Status.Ended() || u == nil || !u.Live.Permits.isAwaiting(c.Key):
	case c.Refused:
		d.settleAttempt(st, u, Report{Address: c.Address, Error: refusedText(u.Live.Permits.Next())})
	case d.s.isCanceling():
		d.cancelAttempt(st, u, c.Address)
	default:
		e := st.newEvent(PermitGranted)
		e.Unit, e.Attempt, e.Key = c.Unit, c.Attempt, c.Key
		if u.Live.Permits.Got+1 == len(u.Live.Permits.List) {
			e.Carrier = d.env.Member
			if st.Node.TimeoutMS > 0 && !st.Node.Exec.FromClaim {
				e.Due = d.timeAfter(st.Node.TimeoutMS)
			}
		}
		d.emitEvent(e)
	}
}

// refusedText is the error of one that does not wait.
func refusedText(p *Permit) string {
	return fmt.Sprintf("limit: no room for %s, %s, and when_full is refuse", p.Key, p.describeLimit())
}

// describeLimit what a limit is.
func (p *Permit) describeLimit() string {
	if p.PerMS > 0 {
		return fmt.Sprintf("of which %d may begin in %d ms", p.Limit, p.PerMS)
	}
	return fmt.Sprintf("of which %d may be under way at once", p.Limit)
}

// taskGranted is granted for the task itself. Once that closes, which one that was retried may have
// to before it has begun anew, it is told what it was told already, or what comes too late.
func (d *decider) taskGranted(c Granted) {
	s := d.s
	switch {
	case s.Status.Ended() || s.Closing != nil || c.Address != s.holderAddress() || !s.Permits.isAwaiting(c.Key):
	case s.isCanceling(): // it has not begun, so it ends now: the decision about the cancel had no room for that
	case c.Refused:
		d.endTask(TaskFailed, refusedText(s.Permits.Next()))
	default:
		d.emitEvent(Event{Type: PermitGranted, Attempt: c.Attempt, Key: c.Key})
		d.queueAll()
	}
}

// evictHolder ends the oldest one that holds a key, because somebody else takes its place.
func (d *decider) evictHolder(c Evict) {
	const text = "canceled: a newer one takes its place at %s"
	if c.Node == "" {
		if !d.s.Status.Ended() && c.Address == d.s.holderAddress() && d.s.Permits.isHolding(c.Key) && d.s.Closing == nil {
			d.endTask(TaskCanceled, fmt.Sprintf(text, c.Key))
		}
		return
	}
	st, u := d.s.findAttempt(c.Address)
	if d.s.Status.Ended() || u == nil || !u.Live.Permits.isHolding(c.Key) {
		return
	}
	if !u.Live.Permits.Waits() { // nobody carries out yet what waits for another one
		d.effects = append(d.effects, st.withdrawEffect(c.Address, u))
	}
	d.settleAttempt(st, u, Report{Address: c.Address, Fatal: true, Error: fmt.Sprintf(text, c.Key)})
}

// applyGranted notes that a permit was given.
func (s *State) applyGranted(e *Event) {
	if e.Node == "" {
		if s.Permits.isAwaiting(e.Key) && e.Attempt == s.Asked {
			s.Permits = &Permits{List: s.Permits.List, Got: s.Permits.Got + 1, AskedAt: e.At}
		}
		return
	}
	st, u := s.findAttempt(e.Address())
	if u == nil || !u.Live.Permits.isAwaiting(e.Key) {
		return
	}
	p := u.Live.Permits
	p.Got, p.AskedAt = p.Got+1, e.At
	if !p.Waits() {
		st.startAttempt(u, e.Unit, e)
		s.trackManual(st)
	}
}

// applyPermitsAsked notes what the task asks for before it begins.
func (s *State) applyPermitsAsked(e *Event) {
	if list := decodePermits(e); list != nil {
		s.Permits = &Permits{List: list, AskedAt: e.At}
		s.Asked++
	}
}

// appendAsk adds what the task waits for.
func (s *State) appendAsk(effects []Effect) []Effect {
	if !s.Permits.Waits() {
		return effects
	}
	return append(effects, Ask{Address: s.holderAddress(), Permit: *s.Permits.Next(), AskedAt: s.Permits.AskedAt, Turn: s.taskTurn()})
}

// describeWait tells what it waits for.
func (p *Permits) describeWait(a Address) Wait {
	return Wait{Address: a, For: WaitsForPermit, Key: p.Next().Key, Text: fmt.Sprintf("it waits for %s, %s", p.Next().Key, p.Next().describeLimit()), Since: p.AskedAt}
}

// WaitsForPermit is what a Wait is for that somebody else ends who has the same key.
const WaitsForPermit = "permit"
