// Package layers opens the store of a member with the layers above its database.
//
// From bottom to top these are: the database; Values, which deletes the large values of deleted
// tasks; Files, which deletes the files of deleted tasks; and Newest, which caches the newest
// versions of flows. The parts of a member use only the top layer, so every deletion passes through
// all layers.
package layers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// Options are the settings of a member that concern its store.
type Options struct {
	Store, Schema string
	Limits        flow.Limits
	Buckets       map[string]objects.Opener
	Logger        *slog.Logger

	FileStore string        // URL of the bucket for files; "" for none
	FilesKeep time.Duration // how long files of ended tasks stay; 0 means as long as the task

	PayloadStore     string // URL of the bucket for large values; "" keeps them in the database
	PayloadThreshold int    // size in bytes above which a value is large; 0 is the default

	Times Times
}

// Times are the waits and ages of the layers.
type Times struct {
	// Settle is how long a starting member waits for the bucket of large values. If the bucket does
	// not answer, the member starts anyway, because most work does not need it.
	Settle time.Duration
	// Unheld is the minimum age of an object that is deleted because nothing refers to it. A
	// younger object may get a reference, because the member that wrote it stores the reference
	// later.
	Unheld time.Duration
}

// DefaultTimes returns the times of a member in production.
func DefaultTimes() Times { return Times{Settle: 5 * time.Second, Unheld: time.Hour} }

// Stack is the store of a member, layer by layer.
type Stack struct {
	Database persistence.Store        // the store without any layer
	Values   *Values                  // nil if all values are in the database
	Files    *Files                   // nil without a bucket for files
	Newest   *persistence.NewestStore // top layer, which the parts of the member use

	Reader   *persistence.Reader // reads tasks through the top layer
	Payloads *payload.Store      // large values; nil if all values are in the database
	Bucket   objects.Bucket      // bucket of files; nil if there is none
	ValuesAt string              // place of large values, for display; "" for the database
}

// Open opens the store and its buckets. The caller must close the stack.
func Open(ctx context.Context, o Options) (*Stack, error) {
	s := &Stack{ValuesAt: o.valuesAt()}
	var err error
	if s.Bucket, err = o.openFiles(ctx); err != nil {
		return nil, err
	}
	large, err := o.openPayloads(ctx)
	if err != nil {
		return nil, err
	}
	if s.Database, err = OpenStore(ctx, o.Store, o.Schema, o.Logger); err != nil {
		return nil, err
	}
	store := s.Database
	if large != nil {
		if s.Payloads, err = newPayloads(ctx, &o, large, store); err != nil {
			return nil, errors.Join(err, store.Close())
		}
		s.Values = &Values{store, large, o.Logger, o.Times.Unheld}
		store = s.Values
	}
	if s.Bucket != nil {
		s.Files = &Files{store, s.Bucket, o.Logger}
		store = s.Files
	}
	s.Newest = persistence.Newest(store, time.Now)
	s.Reader = persistence.NewReader(s.Newest, o.Limits)
	if s.Payloads != nil {
		s.Reader.Keep(s.Payloads)
	}
	return s, nil
}

// Close closes the store.
func (s *Stack) Close() error { return s.Newest.Close() }

// Clear drops all cached data.
func (s *Stack) Clear() {
	s.Newest.Clear()
	s.Reader.Clear()
}
