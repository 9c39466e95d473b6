// Package model is the Store contract in plain maps. Tests compare the databases with the model,
// and tests of the actors run on it. The model is fast, depends only on its calls and its clock,
// and stores nothing on disk. The simulator has a store of its own, which checks each commit on
// arrival and lets several members own a task on purpose.
package model

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

// Options sets the clock of the model. The zero value uses the real time.
type Options struct {
	Now func() time.Time
}

type store struct {
	options Options

	mu             sync.Mutex
	closed         bool
	cluster        string
	generation     int64
	history        int // number of earlier histories
	kept           int64
	format         int                      // format of journals
	values         string                   // place of large values
	members        []*persistence.MemberRow // in order of joining
	seals          []string                 // seals of the members
	renewals       map[string]int64         // number of lease renewals by incarnation
	owners         [persistence.Shards]string
	previousOwners [persistence.Shards]string // last owner of each shard
	moves          []persistence.Move
	tasks          map[string]*task
	logs           map[string][]persistence.LogRow // by task
	stats          map[persistence.StatsSpot]stats.Counts
	permits        *Permits
	externals      *Externals
	approvals      map[string]persistence.ApprovalRow // by id
	flows          []persistence.Flow                 // in order of insertion
	versions       []persistence.Version
	workers        []persistence.Worker
	hooks          map[string]persistence.Hook
	deliveries     map[[2]string]persistence.Delivery // by hook and id
	views          map[string]persistence.SavedView
	holds          map[objectHold]int64 // time of the last Hold
	tokens         []persistence.Token  // in order of name
	schedules      Schedules
	*streamTable
}

type task struct {
	persistence.TaskRow
	rows        []persistence.Row
	snapshot    []byte
	snapshotSeq int64
	checkpoints []checkpoint
	rest        persistence.Rest
	jobs        map[string]persistence.QueueRow
}

// New returns an empty model.
func New(o Options) persistence.Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &store{options: o, renewals: map[string]int64{}, tasks: map[string]*task{},
		logs: map[string][]persistence.LogRow{}, stats: map[persistence.StatsSpot]stats.Counts{},
		views: map[string]persistence.SavedView{}, permits: NewPermits(), externals: NewExternals(),
		approvals: map[string]persistence.ApprovalRow{},
		hooks:     map[string]persistence.Hook{}, deliveries: map[[2]string]persistence.Delivery{},
		holds: map[objectHold]int64{}}
	s.streamTable = &streamTable{s, map[string]map[string]*streamRows{}}
	return s
}

var errClosed = errors.New("the store is closed")

// beginCall begins a call of the store; the returned function ends the call.
func (s *store) beginCall(ctx context.Context) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	return s.mu.Unlock, nil
}

func (s *store) Ping(ctx context.Context) error {
	leave, err := s.beginCall(ctx)
	if err == nil {
		leave()
	}
	return err
}

func (s *store) Lanes() int { return 1 }

func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// checkpoint is a snapshot that is never replaced.
type checkpoint struct {
	seq      int64
	snapshot []byte
}
