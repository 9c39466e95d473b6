package payload

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/persistence"
)

// pendingValues are values that were made in memory: they have references, and no objects yet. As
// long as somebody may refer to one it is read as if its object were there.
type pendingValues struct {
	mu        sync.Mutex
	byContent map[string]*pendingValue // by task and hash
}

type pendingValue struct {
	ref  Ref
	text []byte
	uses int // by those who have yet to let go of it

	writing sync.Mutex
	written bool
}

// Refer gives what is to stand for a value that was made for a task: of an object a reference for
// each large field, of what is still large then one for the whole. Where there are references in a
// value already, those parts of it are looked at that have none, because whoever asks what a task
// refers to does not read objects. Before anything with these references is stored WriteMade has to
// write their objects, and DropMade tells that nobody in memory needs them any longer.
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

// isReference reports whether a value is a reference itself.
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

// addValue notes a value, or that one more needs an equal one.
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

// maxConcurrentWrites is how many objects of one commit are being written at the same time.
const maxConcurrentWrites = 16

// errDropped says that whoever wanted an object written has let go of it meanwhile.
var errDropped = errors.New("nobody needs the value any longer")

// WriteMade writes the objects of values that were made. What was written is not written again.
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

// DropMade lets go of values that were made: they are stored, or will not be.
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
