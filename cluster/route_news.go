package cluster

import (
	"context"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Mention tells the other members of something that nobody waits for, on the way that they are asked on. It may get lost, and never blocks.
func (o Others) Mention(news engine.News) {
	p := o.r.place.Load()
	if p == nil {
		return
	}
	v := p.views.Current()
	for _, to := range v.Living() {
		if to.Incarnation != p.me && p.met(v, to) {
			o.r.cfg.Peers.Tell(to, &news)
		}
	}
}

// Announce has all other members take note of something, and tries again with those that cannot be reached yet. It returns when they
// have, or when ctx ends: false = not all of them have.
func (o Others) Announce(ctx context.Context, news engine.News) bool {
	p := o.r.place.Load()
	if p == nil {
		return true // this one has not come yet
	}
	told := map[string]bool{p.me: true}
	for wait := (pauses{}); ; {
		v := p.views.Current()
		if o.announce(ctx, p, v, told, &news) {
			return true
		}
		if !o.r.pause(ctx, p, v.Generation, &wait) {
			return false
		}
	}
}

// announce asks everybody once who has not been told. False: somebody has to be asked again.
func (o Others) announce(ctx context.Context, p *place, v *View, told map[string]bool, news *engine.News) bool {
	all := true
	var open []persistence.MemberRow
	for _, to := range v.Living() {
		met := p.met(v, to)
		all = all && (met || told[to.Incarnation])
		if met && !told[to.Incarnation] {
			open = append(open, to)
		}
	}
	errs := make([]error, len(open))
	asking := host.Group{Host: &o.r.cfg.Host}
	for i, to := range open {
		asking.Run(func() { _, errs[i] = question[*engine.News](ctx, o.r, to, news) })
	}
	asking.Wait()
	for i, to := range open {
		told[to.Incarnation] = errs[i] == nil
		all = all && errs[i] == nil
	}
	return all
}
