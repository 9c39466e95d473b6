package external

import (
	"context"
	"io/fs"
	"sync"

	"github.com/troupe-engine/troupe/internal/objects"
)

// runLists polls a run with many open attempts by one list call, instead of one call per attempt.
type runLists struct {
	bucket objects.Bucket
	now    func() int64
	mu     sync.Mutex
	runs   map[string]*runList
}

// runList caches the objects of a run.
type runList struct {
	prefix string
	bucket objects.Bucket
	now    func() int64
	mu     sync.Mutex // held while the list is read, so that other callers wait for it
	all    map[string]string
	readAt int64

	// These are the attempts polled since a time, and their number in the previous window.
	since        int64
	looked       map[string]bool
	lookedBefore int
}

// listThreshold is the number of attempts of a run above which lists are used. countWindow is the
// window for that count. listMaxAge is the maximum age of a list. runIdleTimeout is the time
// without polls after which a run is dropped. All times are in milliseconds.
const (
	listThreshold  = 50
	countWindow    = 12_000
	listMaxAge     = 1_000
	runIdleTimeout = 60_000
)

// sourceFor returns the source of the statuses of an attempt's run.
func (l *runLists) sourceFor(a *objects.Attempt) objects.Source {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	r := l.runs[a.Run]
	if r == nil {
		l.forgetIdleRuns(now)
		r = &runList{prefix: objects.RunFolder(a.Run), bucket: l.bucket, now: l.now, since: now, looked: map[string]bool{}}
		l.runs[a.Run] = r
	}
	if now-r.since > countWindow {
		r.since, r.lookedBefore, r.looked = now, len(r.looked), map[string]bool{}
	}
	r.looked[a.Folder] = true
	if max(len(r.looked), r.lookedBefore) > listThreshold {
		return r
	}
	return objects.Direct{Bucket: l.bucket}
}

// forgetIdleRuns drops runs without recent polls.
func (l *runLists) forgetIdleRuns(now int64) {
	if l.runs == nil {
		l.runs = map[string]*runList{}
	}
	for run, r := range l.runs {
		if now-r.since > runIdleTimeout {
			delete(l.runs, run)
		}
	}
}

// Status reads an object only if its version in the list differs from the given one.
func (r *runList) Status(ctx context.Context, key, version string) ([]byte, string, bool, error) {
	now, there, err := r.versionOf(ctx, key)
	switch {
	case err != nil:
		return nil, "", false, err
	case !there:
		return nil, "", false, fs.ErrNotExist
	case now != "" && now == version:
		return nil, version, false, nil
	}
	text, _, changed, err := objects.Direct{Bucket: r.bucket}.Status(ctx, key, version)
	return text, now, changed, err
}

// versionOf returns the version of an object in the list. It reads the list again if the list is
// too old.
func (r *runList) versionOf(ctx context.Context, key string) (version string, there bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); r.all == nil || now-r.readAt > listMaxAge {
		list, err := r.bucket.List(ctx, r.prefix)
		if err != nil {
			return "", false, err
		}
		r.all, r.readAt = make(map[string]string, len(list)), now
		for _, o := range list {
			r.all[o.Key] = o.Version
		}
	}
	version, there = r.all[key]
	return version, there, nil
}
