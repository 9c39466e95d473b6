package cloudrun

import (
	"context"
	"strings"
	"sync"
	"time"

	run "google.golang.org/api/run/v2"
)

const (
	pageSize = 100
	maxPages = 50
	// many is the number of open executions of a job from which they are read with a list.
	many = 6
	// openFor is how long an execution counts as open after a look.
	openFor = 30 * time.Second
	// listIdleTime is how long an unused list is kept.
	listIdleTime = 5 * time.Minute
)

// listCache caches the executions of jobs, newest first.
type listCache struct {
	calls *run.ProjectsLocationsJobsExecutionsService
	mu    sync.Mutex
	of    map[string]*executionList // by the full names of jobs
}

// executionList is the list of one job.
type executionList struct {
	calls *run.ProjectsLocationsJobsExecutionsService
	job   string
	turn  chan struct{} // holds a value while a list request runs

	mu      sync.Mutex
	open    map[string]*askTimes // awaited executions
	touched time.Time

	last *listSnapshot // guarded by turn
}

// askTimes are the times of the first and the last look at an execution.
type askTimes struct{ first, last time.Time }

// listSnapshot is the result of a list request.
type listSnapshot struct {
	began         time.Time
	byName, byJob map[string]*runExecution
	oldest        time.Time
	complete      bool // the list was read to its end
}

func (l *listCache) listOf(job string) *executionList {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for name, one := range l.of {
		if name != job && now.Sub(one.lastTouched()) > listIdleTime {
			delete(l.of, name)
		}
	}
	one := l.of[job]
	if one == nil {
		one = &executionList{calls: l.calls, job: job, turn: make(chan struct{}, 1), open: map[string]*askTimes{}, touched: now}
		l.of[job] = one
	}
	one.markTouched(now)
	return one
}

func (l *executionList) lastTouched() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.touched
}

func (l *executionList) markTouched(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched = now
}

// findStatus returns the status of an execution. It uses a single request, or, if many executions
// of the job are open, a list not older than the pause between two looks.
func (l *listCache) findStatus(ctx context.Context, name string, pause time.Duration) (*runExecution, error) {
	job, _, _ := strings.Cut(name, "/executions/")
	one := l.listOf(job)
	if since, open := one.noteWaiting(name); len(open) >= many {
		all, err := one.readSnapshot(ctx, time.Now().Add(-pause),
			func(*listSnapshot) bool { return true }, func(s *listSnapshot) bool { return s.hasAll(open) })
		if err != nil {
			return nil, err
		}
		switch e := all.byName[name]; {
		case e != nil:
			return one.forgetEnded(e), nil
		case since.After(all.began): // newer than the list; the next list contains it
			return &runExecution{name: name}, nil
		}
	}
	answer, err := l.calls.Get(name).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return one.forgetEnded(executionOf(answer)), nil
}

// noteWaiting records that an execution is awaited. It returns since when, and all awaited
// executions.
func (l *executionList) noteWaiting(name string) (since time.Time, names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.open[name] == nil {
		l.open[name] = &askTimes{first: now}
	}
	l.open[name].last = now
	for other, a := range l.open {
		if now.Sub(a.last) > openFor {
			delete(l.open, other)
			continue
		}
		names = append(names, other)
	}
	return l.open[name].first, names
}

// forgetEnded removes an execution that has ended.
func (l *executionList) forgetEnded(e *runExecution) *runExecution {
	if e.status.Ended {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, e.name)
	}
	return e
}

// findExecution searches for the execution started for our job, not older than the given time; nil
// if there is none.
func (l *listCache) findExecution(ctx context.Context, job, ours string, notBefore time.Time) (*runExecution, error) {
	enough := func(s *listSnapshot) bool { return s.byJob[ours] != nil || s.oldest.Before(notBefore) }
	all, err := l.listOf(job).readSnapshot(ctx, time.Now(), enough, enough)
	if err != nil {
		return nil, err
	}
	return all.byJob[ours], nil
}

// readSnapshot returns a list that is not older than the given time. It uses the last list if that
// is complete or sufficient, and otherwise reads until enough is shown. Concurrent callers wait and
// share the result.
func (l *executionList) readSnapshot(ctx context.Context, since time.Time, willDo, enough func(*listSnapshot) bool) (*listSnapshot, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.last != nil && !l.last.began.Before(since) && (l.last.complete || willDo(l.last)) {
		return l.last, nil
	}
	fresh := &listSnapshot{began: time.Now(), byName: map[string]*runExecution{}, byJob: map[string]*runExecution{}, oldest: time.Now()}
	token := ""
	for range maxPages {
		page, err := l.calls.List(l.job).PageSize(pageSize).PageToken(token).Context(ctx).Do()
		if err != nil {
			return nil, err
		}
		fresh.addPage(page.Executions)
		if token = page.NextPageToken; token == "" {
			fresh.complete = true
			break
		}
		if enough(fresh) {
			break
		}
	}
	l.last = fresh
	return fresh, nil
}

func (s *listSnapshot) addPage(page []*run.GoogleCloudRunV2Execution) {
	for _, answer := range page {
		e := executionOf(answer)
		s.byName[e.name] = e
		if e.job != "" && s.byJob[e.job] == nil {
			s.byJob[e.job] = e
		}
		s.oldest = e.created
	}
}

func (s *listSnapshot) hasAll(names []string) bool {
	for _, name := range names {
		if s.byName[name] == nil {
			return false
		}
	}
	return true
}
