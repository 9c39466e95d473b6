package cluster

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// beats are the signs of life of workers that other members have yet to hear. A member is told of many at once, and then of those
// that came meanwhile, of each worker the newest: one that cannot be reached holds up no worker, and no other member.
type beats struct {
	mu      sync.Mutex
	waiting map[string]*unheard // by incarnation, as long as it is being told
}

// unheard is what one member has yet to hear.
type unheard struct {
	order  []string // of the workers, by their first sign
	newest map[string]engine.Beat
}

const (
	mostBeats = 1000        // in one message
	beatTime  = time.Second // for a member to take note
	beatPause = time.Second // after one did not; the store tells it, too
)

// Beat tells the other members of a worker's sign of life, beside whatever else they do; best effort, it never blocks.
func (o Others) Beat(b engine.Beat) {
	p := o.r.place.Load()
	if p == nil {
		return
	}
	v := p.views.Current()
	for _, to := range v.Living() {
		if to.Incarnation != p.me && p.met(v, to) {
			o.r.beat(p, to, b)
		}
	}
}

func (r *Router) beat(p *place, to persistence.MemberRow, b engine.Beat) {
	r.beats.mu.Lock()
	defer r.beats.mu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	u := r.beats.waiting[to.Incarnation]
	if u == nil {
		u = &unheard{newest: map[string]engine.Beat{}}
		r.beats.waiting[to.Incarnation] = u
		r.work.run(func() { r.tellBeats(p, to) })
	}
	if _, there := u.newest[b.ID]; !there {
		u.order = append(u.order, b.ID)
	}
	u.newest[b.ID] = b
}

// tellBeats tells one member until it has heard all.
func (r *Router) tellBeats(p *place, to persistence.MemberRow) {
	for news := r.nextBeats(p, to.Incarnation); news != nil; news = r.nextBeats(p, to.Incarnation) {
		ctx, cancel := r.cfg.Host.within(r.ctx, beatTime)
		_, err := question[*engine.News](ctx, r, to, news)
		cancel()
		if err != nil {
			r.rest(beatPause)
		}
	}
}

// nextBeats are those to tell next; nil = there are none, or nobody is left to be told.
func (r *Router) nextBeats(p *place, incarnation string) *engine.News {
	r.beats.mu.Lock()
	defer r.beats.mu.Unlock()
	u := r.beats.waiting[incarnation]
	if len(u.order) == 0 || r.ctx.Err() != nil || !p.views.Current().Lives(incarnation) {
		delete(r.beats.waiting, incarnation)
		return nil
	}
	news := &engine.News{}
	n := min(len(u.order), mostBeats)
	for _, id := range u.order[:n] {
		news.Beats = append(news.Beats, u.newest[id])
		delete(u.newest, id)
	}
	u.order = u.order[n:]
	return news
}

// rest waits for a while, or until the router ends.
func (r *Router) rest(d time.Duration) {
	over, stop := r.cfg.Host.timer(d)
	defer stop()
	r.cfg.Host.park(func() bool { return closed(over) || r.ctx.Err() != nil })
	select {
	case <-over:
	case <-r.ctx.Done():
	}
}
