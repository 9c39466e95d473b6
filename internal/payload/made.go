package payload

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/persistence"
)

// made are values that were made in memory: they have references, and no objects yet. As long as somebody may refer to one it is read as if its
// object were there.
type made struct {
	mu   sync.Mutex
	byOf map[string]*making // by task and hash
}

type making struct {
	ref  Ref
	text []byte
	uses int // by those who have yet to let go of it

	writing sync.Mutex
	written bool
}

// Refer gives what is to stand for a value that was made for a task: of an object a reference for each large field, of what is still large then one
// for the whole. Where there are references in a value already, those parts of it are looked at that have none, because whoever
// asks what a task refers to does not read objects. Before anything with these references is stored WriteMade has to write their objects, and DropMade tells
// that nobody in memory needs them any longer.
func (s *Store) Refer(task string, v json.RawMessage) (json.RawMessage, []persistence.Object) {
	if !s.Large(v) || !named(task) {
		return v, nil
	}
	r := referring{s: s, task: task}
	if members, ok := expr.Members(v); ok && !s.is(v) {
		v = object(members, r.part)
	}
	return r.part(v), r.made
}

// is says whether a value is a reference itself.
func (s *Store) is(v json.RawMessage) bool {
	_, ok := s.whole(v)
	return ok
}

// referring is one call of Refer.
type referring struct {
	s    *Store
	task string
	made []persistence.Object
}

func (r *referring) part(v json.RawMessage) json.RawMessage {
	switch {
	case !r.s.Large(v) || r.s.is(v):
		return v
	case !r.s.Refers(v):
		return r.whole(v)
	}
	if members, ok := expr.Members(v); ok {
		return object(members, r.part)
	}
	items, ok := expr.Elements(v)
	if !ok {
		return v
	}
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r.part(item)...)
	}
	return append(b, ']')
}

func (r *referring) whole(v json.RawMessage) json.RawMessage {
	hash := hashOf(v)
	if ref, ok := r.s.written(r.task, hash); ok {
		return r.s.text(&ref)
	}
	m := r.s.made.add(refTo(r.task, hash, v), v)
	r.made = append(r.made, persistence.Object{Owner: r.task, Name: m.ref.Name})
	return r.s.text(&m.ref)
}

// add notes a value, or that one more needs an equal one.
func (m *made) add(ref Ref, v json.RawMessage) *making {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byOf == nil {
		m.byOf = map[string]*making{}
	}
	is := m.byOf[ref.of()]
	if is == nil {
		is = &making{ref: ref, text: v}
		m.byOf[ref.of()] = is
	}
	is.uses++
	return is
}

func (m *made) get(of string) *making {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byOf[of]
}

func (m *made) content(of string) ([]byte, bool) {
	is := m.get(of)
	if is == nil {
		return nil, false
	}
	return is.text, true
}

// writtenAtOnce is how many objects of one commit are being written at the same time.
const writtenAtOnce = 16

// errDropped says that whoever wanted an object written has let go of it meanwhile.
var errDropped = errors.New("nobody needs the value any longer")

// WriteMade writes the objects of values that were made. What was written is not written again.
func (s *Store) WriteMade(ctx context.Context, objects []persistence.Object) error {
	ctx = s.Patiently(ctx)
	var all sync.WaitGroup
	errs, places := make([]error, len(objects)), make(chan struct{}, writtenAtOnce)
	for i, o := range objects {
		places <- struct{}{}
		all.Go(func() {
			errs[i] = s.writeOne(ctx, o)
			<-places
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (s *Store) writeOne(ctx context.Context, o persistence.Object) error {
	ref := Ref{Task: o.Owner, Name: o.Name}
	is := s.made.get(ref.of())
	if is == nil || is.ref.Name != o.Name {
		return errDropped
	}
	is.writing.Lock()
	defer is.writing.Unlock()
	if is.written {
		return nil
	}
	err := s.put(ctx, &is.ref, is.text)
	is.written = err == nil
	return err
}

// DropMade lets go of values that were made: they are stored, or will not be.
func (s *Store) DropMade(objects []persistence.Object) {
	s.made.mu.Lock()
	defer s.made.mu.Unlock()
	for _, o := range objects {
		ref := Ref{Task: o.Owner, Name: o.Name}
		is := s.made.byOf[ref.of()]
		if is == nil || is.ref.Name != o.Name {
			continue
		}
		if is.uses--; is.uses == 0 {
			delete(s.made.byOf, ref.of())
		}
	}
}
