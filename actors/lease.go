package actors

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// lease keeps the member's right to write, and the store's time with it: what the store said at the
// last renewal, carried on by the monotonic clock. A wrong clock on this host does no harm.
type lease struct {
	m *Member

	mu      sync.Mutex
	store   time.Time // the store's time …
	local   time.Time // … when this was the local one
	renewed time.Time // local time before the last renewal was sent
	gone    chan struct{}
	fenced  bool
}

func (l *lease) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store.Add(l.m.cfg.Host.Clock.Now().Sub(l.local))
}

func (l *lease) renew(ctx context.Context) error {
	before := l.m.cfg.Host.Clock.Now()
	store, err := l.m.store.Renew(ctx, l.m.incarnation, l.m.cfg.Lease)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone == nil {
		l.gone = make(chan struct{})
	}
	if errors.Is(err, persistence.ErrFenced) && !l.fenced {
		l.fenced = true
		close(l.gone)
	}
	if err != nil {
		return err
	}
	l.renewed = before
	local := l.m.cfg.Host.Clock.Now()
	// Time must not run backwards for tasks. What the store told was its time somewhere between question
	// and answer; a step back beyond that is taken only when it is large.
	latest := store.Add(local.Sub(before))
	if current := l.store.Add(local.Sub(l.local)); store.Before(current) && current.Sub(latest) < time.Second && !l.store.IsZero() {
		store = current
	}
	l.store, l.local = store, local
	return nil
}

// held says whether the lease certainly still runs.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.fenced && l.m.cfg.Host.Clock.Now().Sub(l.renewed) < l.m.cfg.Lease
}

func (l *lease) lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// keep renews five times per lease until the member goes.
func (l *lease) keep() {
	every := l.m.cfg.Lease / 5
	var again func()
	again = func() {
		if l.m.ctx.Err() != nil {
			return
		}
		l.m.background(func() {
			ctx, cancel := context.WithTimeout(l.m.ctx, l.m.cfg.Lease)
			defer cancel()
			err := l.renew(ctx)
			if errors.Is(err, persistence.ErrFenced) {
				l.m.log.Error("another member has taken over the store: this one ends", "member", l.m.cfg.Name)
				return
			}
			if err != nil && l.m.ctx.Err() == nil {
				l.m.log.Warn("the lease could not be renewed", "error", err)
			}
			l.m.cfg.Host.Clock.AfterFunc(every, again)
		})
	}
	l.m.cfg.Host.Clock.AfterFunc(every, again)
}
