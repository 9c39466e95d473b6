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

// Keys defines the permits that the attempts of a node, or a whole task, must get before they
// continue. Permits limit how many attempts or tasks of a key are under way in the whole cluster.
type Keys struct {
	Concurrency *KeyLimit // limit of concurrent holders; nil if none
	Rate        *KeyLimit // limit of starts per period; nil if none
	Priority    KeyText   // order among requests that wait for the same key; higher is served first
	PerUnit     bool      // the keys differ from unit to unit
}

// KeyLimit is a limit that applies to each key separately.
type KeyLimit struct {
	// Name makes all limits of that name share their permits; "" if the limit belongs to the node
	// or the flow alone.
	Name  string
	Key   KeyText
	Fair  KeyText // waiting requests are served round robin by this text
	Limit int
	PerMS int64 // period of a rate
	Full  WhenFull
}

// KeyText is a reference or a literal text; "" means one key for all.
type KeyText struct {
	Text string
	Ref  expr.Ref
	From KeySource
}

// KeySource is the value in which the reference of a key is resolved.
type KeySource uint8

// Sources of keys: KeyFromItem is the item of a unit, KeyFromRun the input of a dag. For both, the
// Ref is resolved as a path into an input.
const (
	KeyFromEnv KeySource = iota
	KeyFromItem
	KeyFromRun
)

// WhenFull is the action for a request when its key is full.
type WhenFull string

// Values of when_full.
const (
	FullQueue  WhenFull = ""               // the request waits
	FullRefuse WhenFull = "refuse"         // the request fails
	FullCancel WhenFull = "cancel_running" // the oldest holder is canceled to make room
)

// MaxPriority is the maximum absolute value of a priority.
const MaxPriority = 100

// Permit is a request of an attempt or a task to the owner of a key.
type Permit struct {
	Key   string `json:"k"` // key with a prefix for the kind of limit and its owner
	Limit int    `json:"l"`
	// PerMS is the period of a rate. 0 means that the permit is held until the attempt or the task
	// is over.
	PerMS    int64    `json:"m,omitempty"`
	Full     WhenFull `json:"w,omitempty"`
	Priority int      `json:"p,omitempty"`
	Fair     string   `json:"f,omitempty"`
}

// Permits are the permits of an attempt or a task, in the order in which they are requested.
type Permits struct {
	List    []Permit
	Got     int   // number of permits granted so far
	AskedAt int64 // time of the current request
}

// Waits reports whether a permit is still missing.
func (p *Permits) Waits() bool { return p != nil && p.Got < len(p.List) }

// Next returns the permit that is awaited. One must be missing; see Waits.
func (p *Permits) Next() *Permit { return &p.List[p.Got] }

// isAwaiting reports whether the next missing permit is one of the key.
func (p *Permits) isAwaiting(key string) bool { return p.Waits() && p.Next().Key == key }

// isHolding reports whether a permit of the key is held. A permit of a rate is never held.
func (p *Permits) isHolding(key string) bool {
	for i := 0; p != nil && i < p.Got; i++ {
		if p.List[i].Key == key && p.List[i].PerMS == 0 {
			return true
		}
	}
	return false
}

// appendReleases adds the releases of all permits that are held or requested.
func (p *Permits) appendReleases(effects []Effect, a Address) []Effect {
	for i := 0; p != nil && i < min(p.Got+1, len(p.List)); i++ {
		if i == p.Got || p.List[i].PerMS == 0 {
			effects = append(effects, Release{Address: a, Key: p.List[i].Key})
		}
	}
	return effects
}

// appendGot adds the effect of the newest permit: a Held, or for a rate a Release, because that
// permit is used up at once.
func (p *Permits) appendGot(effects []Effect, a Address) []Effect {
	got := &p.List[p.Got-1]
	if got.PerMS > 0 {
		return append(effects, Release{a, got.Key, true})
	}
	return append(effects, Held{a, got.Key})
}

// decodePermits returns the permits of an event, or nil if there are none.
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

// Prefixes of keys. Tasks and jobs never share a permit. So a task that holds a permit may wait for
// permits of its jobs, but jobs never wait for a holder that could wait for them.
const (
	tasksKey = "tasks:"
	jobsKey  = "jobs:"
	rateKey  = "rate:"
)

// encodePermits returns the list of permits that a node or a flow needs, as JSON for an event. Keys
// without a name belong to place. value resolves a text.
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
		panic(err) // texts and numbers can always be encoded
	}
	return bytes.TrimSpace(b.Bytes())
}

// keyText returns the text of a key: a string value unchanged, any other value as JSON.
func keyText(value func(*KeyText) json.RawMessage, k *KeyText) string {
	if k.Text == "" {
		return ""
	}
	v := value(k)
	if text, ok := expr.String(v); ok && IsName(text) {
		return text // stores may mix up other texts; as JSON they stay distinct
	}
	return string(expr.Compact(orNull(v)))
}

// maxKey is the maximum length of a key. A longer key is cut and gets a hash, to stay distinct.
const maxKey = 400

// keyOf builds a key that every store can hold.
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

// priorityOf returns a priority. A value that is not a number counts as 0; a number out of range is
// clamped.
func priorityOf(v json.RawMessage) int {
	f, ok := expr.Number(v)
	if !ok || math.IsNaN(f) {
		return 0
	}
	return int(max(-MaxPriority, min(f, MaxPriority)))
}

// unitPermits returns the permits that the attempts of a unit need now, as JSON.
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

// itemOf returns the item of a unit.
func (st *Step) itemOf(unit int) json.RawMessage {
	switch st.Node.Kind {
	case KindForeach:
		return st.unitInput(unit)
	case KindFanout:
		return orNull(st.fanoutItem(unit))
	}
	return null
}

// runFor returns the run of the step's dag, or in graph mode the params of the step.
func (st *Step) runFor() json.RawMessage {
	if st.Node.Dag != nil {
		return st.scope.runOf(st.Node)
	}
	return orNull(st.Params)
}

// taskPermits returns the permits that a task needs before its first node, or nil if there are
// none.
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

// holderAddress returns the address of the task as a holder of permits. It changes with each start,
// because every start requests the permits again.
func (s owedState) holderAddress() Address { return Address{Attempt: s.Asked} }

// handleGranted continues an attempt or task that got a permit. A refused attempt or task ends,
// because its key is full. A permit that is no longer awaited is ignored.
func (d permitDecider) handleGranted(c Granted) {
	if c.Node == "" {
		d.taskPart().taskGranted(c)
		return
	}
	st, u := d.s.findAttempt(c.Address)
	switch {
	case d.s.Status.Ended() || u == nil || !u.Live.Permits.isAwaiting(c.Key):
	case c.Refused:
		d.attemptPart().settleAttempt(st, u, Report{Address: c.Address, Error: refusedText(u.Live.Permits.Next())})
	case d.s.isCanceling():
		d.taskPart().cancelAttempt(st, u, c.Address)
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

// refusedText returns the error of a request that was refused because its key is full.
func refusedText(p *Permit) string {
	return fmt.Sprintf("limit: no room for %s, %s, and when_full is refuse", p.Key, p.describeLimit())
}

// describeLimit describes a limit in an error text.
func (p *Permit) describeLimit() string {
	if p.PerMS > 0 {
		return fmt.Sprintf("of which %d may begin in %d ms", p.Limit, p.PerMS)
	}
	return fmt.Sprintf("of which %d may be under way at once", p.Limit)
}

// taskGranted handles a permit for the task itself. A closing task ignores the permit: it is a
// repetition or came too late. A retried task may close again before it has begun.
func (d taskDecider) taskGranted(c Granted) {
	s := d.s
	switch {
	case s.Status.Ended() || s.Closing != nil || c.Address != s.owedPart().holderAddress() || !s.Permits.isAwaiting(c.Key):
	// The task has not begun and ends now. The decision about the cancel had no room to end it.
	case s.isCanceling():
	case c.Refused:
		d.endTask(TaskFailed, refusedText(s.Permits.Next()))
	default:
		d.emitEvent(Event{Type: PermitGranted, Attempt: c.Attempt, Key: c.Key})
		d.queueAll()
	}
}

// evictHolder ends the oldest holder of a key, so that a new request gets the permit.
func (d permitDecider) evictHolder(c Evict) {
	const text = "canceled: a newer one takes its place at %s"
	if c.Node == "" {
		if !d.s.Status.Ended() && c.Address == d.s.owedPart().holderAddress() && d.s.Permits.isHolding(c.Key) && d.s.Closing == nil {
			d.taskPart().endTask(TaskCanceled, fmt.Sprintf(text, c.Key))
		}
		return
	}
	st, u := d.s.findAttempt(c.Address)
	if d.s.Status.Ended() || u == nil || !u.Live.Permits.isHolding(c.Key) {
		return
	}
	if !u.Live.Permits.Waits() { // an attempt that waits for another permit has no carrier yet
		d.effects = append(d.effects, st.withdrawEffect(c.Address, u))
	}
	d.attemptPart().settleAttempt(st, u, Report{Address: c.Address, Fatal: true, Error: fmt.Sprintf(text, c.Key)})
}

// applyGranted records that a permit was given.
func (s evolveState) applyGranted(e *Event) {
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

// applyPermitsAsked records the permits that the task needs before it begins.
func (s evolveState) applyPermitsAsked(e *Event) {
	if list := decodePermits(e); list != nil {
		s.Permits = &Permits{List: list, AskedAt: e.At}
		s.Asked++
	}
}

// appendAsk adds the request for the permit that the task waits for.
func (s owedState) appendAsk(effects []Effect) []Effect {
	if !s.Permits.Waits() {
		return effects
	}
	return append(effects, Ask{Address: s.holderAddress(), Permit: *s.Permits.Next(), AskedAt: s.Permits.AskedAt, Turn: s.taskTurn()})
}

// describeWait returns the Wait for the next permit.
func (p *Permits) describeWait(a Address) Wait {
	return Wait{Address: a, For: WaitsForPermit, Key: p.Next().Key,
		Text: fmt.Sprintf("it waits for %s, %s", p.Next().Key, p.Next().describeLimit()), Since: p.AskedAt}
}

// WaitsForPermit is the reason of a Wait that ends when another holder of the same key ends.
const WaitsForPermit = "permit"
