package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Mention sends news to the other members without waiting. The news may be lost.
func (o Others) Mention(news engine.News) {
	p := o.r.place.Load()
	if p == nil {
		return
	}
	v := p.views.Current()
	for _, to := range v.Living() {
		if to.Incarnation != p.me && p.hasMet(v, to) {
			o.r.cfg.Peers.Tell(to, &news)
		}
	}
}

// Announce makes all other members record news, and retries unreachable ones. It returns true when
// all have recorded the news, and false if ctx ends before.
func (o Others) Announce(ctx context.Context, news engine.News) bool {
	p := o.r.place.Load()
	return p == nil || // this member has not joined yet
		o.announceUntil(ctx, p, map[string]bool{p.me: true}, &news)
}

// Inform is like Announce, but skips members that recently failed to record news in time. So only
// one of many callers waits for such a member.
func (o Others) Inform(ctx context.Context, news engine.News) {
	p := o.r.place.Load()
	if p == nil {
		return
	}
	told, left := map[string]bool{p.me: true}, p.views.Current().Living()
	left = slices.DeleteFunc(left, func(m persistence.MemberRow) bool {
		told[m.Incarnation] = told[m.Incarnation] || o.r.unresponsive.isLeftOut(m.Incarnation, o.r.cfg.Host.Now())
		return told[m.Incarnation]
	})
	all := o.announceUntil(ctx, p, told, &news)
	if !all && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return // the caller stopped waiting, which is no failure of the members
	}
	for _, m := range left {
		o.r.unresponsive.recordResponse(m.Incarnation, !told[m.Incarnation], o.r.cfg.Host.Now())
	}
}

func (o Others) announceUntil(ctx context.Context, p *localMember, told map[string]bool, news *engine.News) bool {
	for wait := (retryBackoff{}); ; {
		v := p.views.Current()
		if o.announceNews(ctx, p, v, told, news) {
			return true
		}
		if !o.r.waitForView(ctx, p, v.Generation, &wait) {
			return false
		}
	}
}

// announceNews sends the news once to each member that has not recorded it. It returns false if a
// member must be asked again.
func (o Others) announceNews(ctx context.Context, p *localMember, v *View, told map[string]bool, news *engine.News) bool {
	all := true
	var open []persistence.MemberRow
	for _, to := range v.Living() {
		met := p.hasMet(v, to)
		all = all && (met || told[to.Incarnation])
		if met && !told[to.Incarnation] {
			open = append(open, to)
		}
	}
	errs := make([]error, len(open))
	asking := host.Group{Host: &o.r.cfg.Host}
	for i, to := range open {
		asking.Run(func() { _, errs[i] = askMember[*engine.News](ctx, o.r, to, news) })
	}
	asking.Wait()
	for i, to := range open {
		told[to.Incarnation] = errs[i] == nil
		all = all && errs[i] == nil
	}
	return all
}

// leftOutTime is how long a member is skipped after it did not record news in time.
const leftOutTime = 3 * time.Second

// unresponsiveMembers holds the members that did not record news in time, and the end of the time
// for which they are skipped.
type unresponsiveMembers struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// isLeftOut reports whether a member is skipped. After leftOutTime, one caller tries again for all.
func (d *unresponsiveMembers) isLeftOut(incarnation string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, is := d.until[incarnation]
	if is && !now.Before(until) {
		d.until[incarnation] = now.Add(leftOutTime)
	}
	return now.Before(until)
}

// recordResponse records whether a member is unresponsive.
func (d *unresponsiveMembers) recordResponse(incarnation string, is bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.until, incarnation)
	if is {
		// drops members that are gone
		maps.DeleteFunc(d.until, func(_ string, until time.Time) bool { return now.Sub(until) > time.Minute })
		d.until[incarnation] = now.Add(leftOutTime)
	}
}
