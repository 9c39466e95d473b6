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
	// many is from how many open executions of a job on they are looked at with a list.
	many = 6
	// openFor is how long an execution counts as open that was looked at.
	openFor = 30 * time.Second
	// bored is how long a list is kept that nobody asks for.
	bored = 5 * time.Minute
)

// lists are what executions jobs have, newest first.
type lists struct {
	calls *run.ProjectsLocationsJobsExecutionsService
	mu    sync.Mutex
	of    map[string]*list // by the full names of jobs
}

// list is of one job.
type list struct {
	calls *run.ProjectsLocationsJobsExecutionsService
	job   string
	turn  chan struct{} // has something while somebody lists

	mu      sync.Mutex
	open    map[string]*asked // executions that are waited for
	touched time.Time

	last *shown // whoever has the turn may look
}

// asked is when somebody asked how an execution is, for the first time and for the last.
type asked struct{ first, last time.Time }

// shown is what a list has told.
type shown struct {
	began         time.Time
	byName, byJob map[string]*execution
	oldest        time.Time
	whole         bool // there are no more
}

func (l *lists) get(job string) *list {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for name, one := range l.of {
		if name != job && now.Sub(one.lastTouched()) > bored {
			delete(l.of, name)
		}
	}
	one := l.of[job]
	if one == nil {
		one = &list{calls: l.calls, job: job, turn: make(chan struct{}, 1), open: map[string]*asked{}, touched: now}
		l.of[job] = one
	}
	one.touch(now)
	return one
}

func (l *list) lastTouched() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.touched
}

func (l *list) touch(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched = now
}

// look tells how an execution is: by a call for it alone, or, with many others of its job, as a
// list says that is no older than the pause between two looks.
func (l *lists) look(ctx context.Context, name string, pause time.Duration) (*execution, error) {
	job, _, _ := strings.Cut(name, "/executions/")
	one := l.get(job)
	if since, open := one.note(name); len(open) >= many {
		all, err := one.shown(ctx, time.Now().Add(-pause), func(*shown) bool { return true }, func(s *shown) bool { return s.has(open) })
		if err != nil {
			return nil, err
		}
		switch e := all.byName[name]; {
		case e != nil:
			return one.looked(e), nil
		case since.After(all.began): // it is newer than the list: the next one has it
			return &execution{name: name}, nil
		}
	}
	answer, err := l.calls.Get(name).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return one.looked(executionOf(answer)), nil
}

// note says that somebody waits for an execution, and tells since when, and which ones are waited
// for.
func (l *list) note(name string) (since time.Time, names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.open[name] == nil {
		l.open[name] = &asked{first: now}
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

// looked forgets an execution that has ended.
func (l *list) looked(e *execution) *execution {
	if e.status.Ended {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, e.name)
	}
	return e
}

// find looks for the execution that was begun for a job of ours, which is not older than a time;
// nil = there is none.
func (l *lists) find(ctx context.Context, job, ours string, notBefore time.Time) (*execution, error) {
	enough := func(s *shown) bool { return s.byJob[ours] != nil || s.oldest.Before(notBefore) }
	all, err := l.get(job).shown(ctx, time.Now(), enough, enough)
	if err != nil {
		return nil, err
	}
	return all.byJob[ours], nil
}

// shown is a list that was not begun before a time: the last one, if it is whole or will do, else
// one that is read until it shows enough. Those who ask meanwhile wait, and are served with it,
// too.
func (l *list) shown(ctx context.Context, since time.Time, willDo, enough func(*shown) bool) (*shown, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.last != nil && !l.last.began.Before(since) && (l.last.whole || willDo(l.last)) {
		return l.last, nil
	}
	fresh := &shown{began: time.Now(), byName: map[string]*execution{}, byJob: map[string]*execution{}, oldest: time.Now()}
	token := ""
	for range maxPages {
		page, err := l.calls.List(l.job).PageSize(pageSize).PageToken(token).Context(ctx).Do()
		if err != nil {
			return nil, err
		}
		fresh.add(page.Executions)
		if token = page.NextPageToken; token == "" {
			fresh.whole = true
			break
		}
		if enough(fresh) {
			break
		}
	}
	l.last = fresh
	return fresh, nil
}

func (s *shown) add(page []*run.GoogleCloudRunV2Execution) {
	for _, answer := range page {
		e := executionOf(answer)
		s.byName[e.name] = e
		if e.job != "" && s.byJob[e.job] == nil {
			s.byJob[e.job] = e
		}
		s.oldest = e.created
	}
}

func (s *shown) has(names []string) bool {
	for _, name := range names {
		if s.byName[name] == nil {
			return false
		}
	}
	return true
}
