package payload

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/objects"
)

// Options configure a Store.
type Options struct {
	Bucket objects.Bucket
	Secret string // secret of the store that holds the tasks
	Over   int    // size in bytes above which values are kept in the bucket
	Most   int    // largest number of bytes assembled for a caller that needs a whole value
}

// Store keeps large values in a bucket. A member without a bucket has a nil Store, which leaves all
// values unchanged.
type Store struct {
	opts  Options
	mark  []byte
	cache *contentCache
	made  pendingValues
	aside atomic.Pointer[func(do func())]
}

// Number of bytes of cached contents, and the time during which a written object is reused for an
// equal value.
const (
	cacheBytes = 16 << 20
	reuseFor   = 10 * time.Minute
)

// New returns a Store.
func New(o Options) *Store {
	return &Store{opts: o, mark: referenceMarker(o.Secret), cache: newCache(cacheBytes)}
}

// Aside sets the function that runs reads of contents, so that waiting for a read blocks nothing
// else. It may be called again.
func (s *Store) Aside(aside func(do func())) { s.aside.Store(&aside) }

// Large reports whether a value is large enough for the bucket.
func (s *Store) Large(v json.RawMessage) bool { return s != nil && len(v) > s.opts.Over }

// Keep writes the object of a large value of a task and returns its reference. It returns a small
// value unchanged.
func (s *Store) Keep(ctx context.Context, task string, v json.RawMessage) (json.RawMessage, error) {
	if !s.Large(v) || !isFolderName(task) || bytes.Contains(v, s.mark) {
		return v, nil
	}
	hash := hashOf(v)
	if known, ok := s.recentlyWritten(task, hash); ok {
		return s.referenceText(&known), nil
	}
	r := refTo(task, hash, v)
	if err := s.putObject(ctx, &r, v); err != nil {
		return nil, err
	}
	return s.referenceText(&r), nil
}

// recentlyWritten returns the reference to an equal value of the task that was written recently.
func (s *Store) recentlyWritten(task, hash string) (Ref, bool) {
	known, ok := s.cache.getEntry(contentKeyOf(task, hash))
	return known.ref, ok && time.Since(known.writtenAt) < reuseFor
}

// refTo returns a new reference for a value of a task.
func refTo(task, hash string, v json.RawMessage) Ref {
	return Ref{Task: task, Name: hash + "." + rand.Text()[:10], Size: len(v)}
}

// putObject writes the object of a reference.
func (s *Store) putObject(ctx context.Context, r *Ref, v []byte) error {
	err := retryBucket(ctx, func(ctx context.Context) error { return s.opts.Bucket.Put(ctx, r.Key(), v) })
	if err != nil {
		return fmt.Errorf("a value of %d bytes of task %s could not be kept at %s: %w", len(v),
			r.Task, s.opts.Bucket.Address(Folder(r.Task)), err)
	}
	s.cache.putEntry(cacheEntry{contentKey: r.contentKey(), ref: *r, content: bytes.Clone(v), writtenAt: time.Now()})
	return nil
}

// KeepFields is like Keep, for params. It stores each large field of an object separately, so that
// the other fields can be read alone.
func (s *Store) KeepFields(ctx context.Context, task string, params json.RawMessage) (json.RawMessage, error) {
	if _, ok := s.asReference(params); ok || !s.Large(params) {
		return params, nil
	}
	members, ok := expr.Members(params)
	if !ok {
		return s.Keep(ctx, task, params)
	}
	var err error
	kept := mapFields(members, func(v json.RawMessage) json.RawMessage {
		if err == nil {
			v, err = s.Keep(ctx, task, v)
		}
		return v
	})
	return kept, err
}

// mapFields returns a JSON object with each value replaced by the result of become.
func mapFields(members []expr.Member, become func(json.RawMessage) json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(expr.AppendQuote(b, m.Key), ':'), become(m.Value)...)
	}
	return append(b, '}')
}

// Open returns the content of a reference. It returns any other value unchanged.
func (s *Store) Open(v json.RawMessage) (json.RawMessage, error) {
	if s == nil {
		return v, nil
	}
	r, ok := s.asReference(v)
	if !ok {
		return v, nil
	}
	return s.readContent(context.Background(), &r)
}

// Whole returns a value with all references replaced by their contents.
func (s *Store) Whole(v json.RawMessage) (json.RawMessage, error) {
	return s.WholeFor(context.Background(), v)
}

// WholeFor is like Whole, with a context that can end the wait, or extend it (see Patiently).
func (s *Store) WholeFor(ctx context.Context, v json.RawMessage) (json.RawMessage, error) {
	if !s.Refers(v) {
		return v, nil
	}
	size := s.Size(v)
	if s.opts.Most > 0 && size > s.opts.Most {
		return nil, flow.Errorf(flow.Limit, "the value has %d bytes with all that it refers to, "+
			"more than the %d that can be put together: pass a part of it", size, s.opts.Most)
	}
	if r, ok := s.asReference(v); ok { // may be cached, and needs no copy
		return s.readContent(ctx, &r)
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	err := s.Write(ctx, b, v)
	return b.Bytes(), err
}

// Refers reports whether a value contains references.
func (s *Store) Refers(v json.RawMessage) bool { return s != nil && bytes.Contains(v, s.mark) }

// Refs returns the references in a value.
func (s *Store) Refs(v json.RawMessage) (refs []Ref) {
	if s == nil {
		return nil
	}
	for {
		r, begin, end := s.nextReference(v)
		if begin < 0 {
			return refs
		}
		refs, v = append(refs, r), v[end:]
	}
}

// Size returns the number of bytes of a value with all references replaced by their contents.
func (s *Store) Size(v json.RawMessage) int {
	size := len(v)
	if s == nil {
		return size
	}
	for {
		r, begin, end := s.nextReference(v)
		if begin < 0 {
			return size
		}
		size += r.Size - (end - begin)
		v = v[end:]
	}
}

// Write writes a value with all references replaced by their contents. It holds at most one content
// in memory.
func (s *Store) Write(ctx context.Context, w io.Writer, v json.RawMessage) error {
	for s != nil {
		r, begin, end := s.nextReference(v)
		if begin < 0 {
			break
		}
		content, err := s.readContent(ctx, &r)
		if err != nil {
			return err
		}
		for _, part := range [][]byte{v[:begin], content} {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		v = v[end:]
	}
	_, err := w.Write(v)
	return err
}

// Begin returns at most most bytes from the beginning of a value. Parts from the bucket are not
// verified, because only a whole content can be compared with its hash.
func (s *Store) Begin(ctx context.Context, v json.RawMessage, most int) (text []byte, err error) {
	if !s.Refers(v) {
		return v[:min(len(v), most)], nil
	}
	for len(text) < most {
		r, begin, end := s.nextReference(v)
		if begin < 0 {
			break
		}
		text = append(text, v[:begin]...)
		if need := min(most-len(text), r.Size); need > 0 {
			part, err := s.readPart(ctx, &r, 0, need)
			if err != nil {
				return nil, err
			}
			text = append(text, part...)
		}
		v = v[end:]
	}
	text = append(text, v...)
	return text[:min(len(text), most)], nil
}

// Glimpse returns the size and the beginning of a value, and a sum that is the same for equal
// values wherever they are stored. For a reference the sum is the hash of the content. If the
// beginning cannot be read, begin holds the error text.
func (s *Store) Glimpse(v json.RawMessage, most int) (size int, begin []byte, sum [sha256.Size]byte) {
	begin, err := s.Begin(context.Background(), v, most)
	if err != nil {
		begin = []byte(err.Error())
	}
	size = s.Size(v)
	if r, ok := s.asReference(v); ok {
		known, _ := hex.DecodeString(r.contentHash()) // written by hashOf, so it decodes
		copy(sum[:], known)
		return size, begin, sum
	}
	hash := sha256.New()
	for {
		r, from, to := s.nextReference(v)
		if from < 0 {
			break
		}
		hash.Write(v[:from])
		hash.Write([]byte(r.contentHash()))
		v = v[to:]
	}
	hash.Write(v)
	return size, begin, [sha256.Size]byte(hash.Sum(nil))
}

// readContent reads the content of a reference and verifies its hash.
func (s *Store) readContent(ctx context.Context, r *Ref) (content []byte, err error) {
	if known, ok := s.knownContent(r); ok {
		return known, nil
	}
	s.runAside(func() {
		err = retryBucket(ctx, func(ctx context.Context) error {
			content, err = s.opts.Bucket.Get(ctx, r.Key(), r.Size)
			return err
		})
	})
	switch {
	case err != nil:
		return nil, s.readError(r, err)
	case len(content) != r.Size || hashOf(content) != r.contentHash():
		return nil, s.changedError(r)
	}
	s.cache.putEntry(cacheEntry{contentKey: r.contentKey(), ref: *r, content: content})
	return content, nil
}

// knownContent returns a content that is in memory.
func (s *Store) knownContent(r *Ref) ([]byte, bool) {
	if known, ok := s.cache.getEntry(r.contentKey()); ok {
		return known.content, true
	}
	return s.made.findContent(r.contentKey())
}

func (s *Store) runAside(do func()) {
	if aside := s.aside.Load(); aside != nil {
		(*aside)(do)
		return
	}
	do()
}

// readPart reads n bytes of the content of a reference, from the given offset.
func (s *Store) readPart(ctx context.Context, r *Ref, from, n int) (part []byte, err error) {
	if known, ok := s.knownContent(r); ok {
		return known[from : from+n], nil
	}
	err = retryBucket(ctx, func(ctx context.Context) error {
		part, err = s.opts.Bucket.Range(ctx, r.Key(), int64(from), n)
		return err
	})
	switch {
	case err != nil:
		return nil, s.readError(r, err)
	case len(part) != n:
		return nil, s.changedError(r)
	}
	return part, nil
}

func (s *Store) readError(r *Ref, err error) error {
	at := s.opts.Bucket.Address(r.Key())
	if errors.Is(err, fs.ErrNotExist) {
		return lostContentf("the object %s of task %s is gone; it was at %s", r.Name, r.Task, at)
	}
	return fmt.Errorf("the object %s of task %s could not be read at %s: %w", r.Name, r.Task, at, err)
}

func (s *Store) changedError(r *Ref) error {
	return lostContentf("the object %s of task %s, at %s, is not what was written: its size or "+
		"its SHA-256 is another one", r.Name, r.Task, s.opts.Bucket.Address(r.Key()))
}

// lostContentError is a flow.ErrNoContent with details.
type lostContentError struct{ told *flow.Error }

func lostContentf(format string, args ...any) error {
	return &lostContentError{flow.Errorf(flow.Conflict, "the content of a value is lost: "+format, args...)}
}

func (e *lostContentError) Error() string { return e.told.Msg }

func (e *lostContentError) Unwrap() []error { return []error{e.told, flow.ErrNoContent} }

// Time limits of retries: retryFor while a client waits, longRetryFor for callers that can wait
// longer, tryTime for a single try. firstPause is the first pause between two tries.
const (
	retryFor     = 30 * time.Second
	longRetryFor = 5 * time.Minute
	tryTime      = 30 * time.Second
	firstPause   = 50 * time.Millisecond
)

type patientKey struct{}

// Patiently returns a context for callers that can wait long for a bucket that does not answer.
// Jobs use this context, because otherwise their work would be lost.
func (s *Store) Patiently(ctx context.Context) context.Context {
	return context.WithValue(ctx, patientKey{}, true)
}

// retryBucket calls ask until the bucket answers or the time limit passes.
func retryBucket(ctx context.Context, ask func(context.Context) error) error {
	most := retryFor
	if ctx.Value(patientKey{}) != nil {
		most = longRetryFor
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, 5*time.Second) {
		err := tryOnce(ctx, ask)
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// tryOnce calls ask once, with a time limit, so that a broken connection does not prevent the next
// try.
func tryOnce(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	return ask(ctx)
}
