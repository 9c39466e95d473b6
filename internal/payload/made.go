package payload

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/persistence"
)

// pendingValues are values in memory that have references but no objects yet. As long as a value
// may be referred to, reads treat it as if its object existed.
type pendingValues struct {
	mu        sync.Mutex
	byContent map[string]*pendingValue // by task and hash
}

type pendingValue struct {
	ref  Ref
	text []byte
	uses int // number of users that have not released the value

	writing sync.Mutex
	written bool
}

// Refer replaces a large value made for a task. In an object each large field becomes a reference;
// if the rest is still large, the whole becomes one reference. If the value already contains
// references, only the other parts are examined, because the search for a task's references does
// not read objects. WriteMade has to write the objects before anything with these references is
// stored. DropMade releases them from memory.
func (s *Store) Refer(task string, v json.RawMessage) (json.RawMessage, []persistence.Object) {
	if !s.Large(v) || !isFolderName(task) {
		return v, nil
	}
	r := referCall{store: s, task: task}
	if members, ok := expr.Members(v); ok && !s.isReference(v) {
		v = mapFields(members, r.referPart)
	}
	return r.referPart(v), r.made
}

// isReference reports whether a value is itself a reference.
func (s *Store) isReference(v json.RawMessage) bool {
	_, ok := s.asReference(v)
	return ok
}

// referCall is one call of Refer.
type referCall struct {
	store *Store
	task  string
	made  []persistence.Object
}

func (r *referCall) referPart(v json.RawMessage) json.RawMessage {
	switch {
	case !r.store.Large(v) || r.store.isReference(v):
		return v
	case !r.store.Refers(v):
		return r.referWhole(v)
	}
	if members, ok := expr.Members(v); ok {
		return mapFields(members, r.referPart)
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
		b = append(b, r.referPart(item)...)
	}
	return append(b, ']')
}

func (r *referCall) referWhole(v json.RawMessage) json.RawMessage {
	hash := hashOf(v)
	if ref, ok := r.store.recentlyWritten(r.task, hash); ok {
		return r.store.referenceText(&ref)
	}
	m := r.store.made.addValue(refTo(r.task, hash, v), v)
	r.made = append(r.made, persistence.Object{Owner: r.task, Name: m.ref.Name})
	return r.store.referenceText(&m.ref)
}

// addValue adds a value, or counts another user of an equal one.
func (m *pendingValues) addValue(ref Ref, v json.RawMessage) *pendingValue {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byContent == nil {
		m.byContent = map[string]*pendingValue{}
	}
	is := m.byContent[ref.contentKey()]
	if is == nil {
		is = &pendingValue{ref: ref, text: v}
		m.byContent[ref.contentKey()] = is
	}
	is.uses++
	return is
}

func (m *pendingValues) getValue(of string) *pendingValue {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byContent[of]
}

func (m *pendingValues) findContent(of string) ([]byte, bool) {
	is := m.getValue(of)
	if is == nil {
		return nil, false
	}
	return is.text, true
}

// maxConcurrentWrites is the number of objects of one commit that are written concurrently.
const maxConcurrentWrites = 16

// errDropped reports that the caller that needed an object released it before the write.
var errDropped = errors.New("nobody needs the value any longer")

// WriteMade writes the objects of the given values. It skips those already written.
func (s *Store) WriteMade(ctx context.Context, objects []persistence.Object) error {
	ctx = s.Patiently(ctx)
	var all sync.WaitGroup
	errs, places := make([]error, len(objects)), make(chan struct{}, maxConcurrentWrites)
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
	is := s.made.getValue(ref.contentKey())
	if is == nil || is.ref.Name != o.Name {
		return errDropped
	}
	is.writing.Lock()
	defer is.writing.Unlock()
	if is.written {
		return nil
	}
	err := s.putObject(ctx, &is.ref, is.text)
	is.written = err == nil
	return err
}

// DropMade releases values that are stored now, or never will be.
func (s *Store) DropMade(objects []persistence.Object) {
	s.made.mu.Lock()
	defer s.made.mu.Unlock()
	for _, o := range objects {
		ref := Ref{Task: o.Owner, Name: o.Name}
		is := s.made.byContent[ref.contentKey()]
		if is == nil || is.ref.Name != o.Name {
			continue
		}
		if is.uses--; is.uses == 0 {
			delete(s.made.byContent, ref.contentKey())
		}
	}
}
