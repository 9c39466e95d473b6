package external

import (
	"context"
	"io/fs"
	"sync"

	"github.com/troupe-engine/troupe/internal/objects"
)

// runLists lets the statuses of a run with many open attempts be looked for with one list, instead
// of one by one.
type runLists struct {
	bucket objects.Bucket
	now    func() int64
	mu     sync.Mutex
	runs   map[string]*runList
}

// runList is what is known of a run's attempts.
type runList struct {
	prefix string
	bucket objects.Bucket
	now    func() int64
	mu     sync.Mutex // held while the list is read: who comes then waits for it
	all    map[string]string
	readAt int64

	// Those who were looked at since a time, and how many they were before that.
	since        int64
	looked       map[string]bool
	lookedBefore int
}

// How many attempts of a run are looked at one by one; in what time they are counted; for how long
// a list is as good as a new one; and after which time without any look a run is forgotten. All
// times in milliseconds.
const (
	listThreshold  = 50
	countWindow    = 12_000
	listMaxAge     = 1_000
	runIdleTimeout = 60_000
)

// sourceFor is where the statuses of an attempt's run come from.
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

// forgetIdleRuns drops the runs that nobody has looked at for a while.
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

// Status reads one only if the list has it with another version, or cannot say.
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

// versionOf is that of an object in the list, which is read when it is too old.
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
