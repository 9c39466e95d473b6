package troupe

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/attach"
	"github.com/troupe-engine/troupe/api/graph"
	"github.com/troupe-engine/troupe/api/ork"
	"github.com/troupe-engine/troupe/api/pgflow"
	"github.com/troupe-engine/troupe/engine"
)

// Serve answers the HTTP API until ctx ends; l may be nil to listen where the Config says. A member of a cluster hands over
// what it owns and lets its jobs finish before it stops to answer, and takes nothing any more: what is left for it is Close. One that is fenced stops to
// answer with an error. One whose store went back in time begins anew: connections break, and new ones wait until it has begun.
func (e *Engine) Serve(ctx context.Context, l net.Listener) error {
	l, err := e.listen(l)
	if err != nil {
		return err
	}
	defer e.unserve()
	one, err := e.servedLife(ctx)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	e.cfg.Logger.Info("the API is served", "address", l.Addr().String(), "tls", e.cfg.TLSCert != "", "tokens", len(e.cfg.Tokens))
	defer l.Close()
	for one != nil {
		member := one.member
		rewound, err := one.serve(ctx, e, openDoor(l, func() bool { return ctx.Err() == nil && member.Rewound() != nil }))
		if !rewound {
			return err
		}
		one = e.nextLife(ctx)
	}
	return nil
}

// life is one of the member, and what answers in it.
type life struct {
	member     *actors.Member
	membership *membership
	server     *api.Server
}

// servedLife returns the present life, which it begins if there is none.
func (e *Engine) servedLife(ctx context.Context) (*life, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.live(ctx); err != nil {
		return nil, err
	}
	server, err := e.server(*e.asked.Load())
	if err != nil {
		return nil, err
	}
	return &life{e.member, e.membership, server}, nil
}

// nextLife begins another life when the store went back in time, however long that takes; nil when ctx ends before, or the engine is closed.
func (e *Engine) nextLife(ctx context.Context) *life {
	for pause := firstRevival; ; pause = min(2*pause, mostRevival) {
		one, err := e.servedLife(ctx)
		if err == nil {
			return one
		}
		e.cfg.Logger.Warn("the member cannot begin anew: trying on", "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		case <-e.ctx.Done():
			return nil
		}
	}
}

// serve answers for one life. rewound: it has ended because the store went back in time.
func (o *life) serve(ctx context.Context, e *Engine, l net.Listener) (rewound bool, err error) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() { // ends with the serving below
		defer stop()
		select {
		case <-ctx.Done():
			e.cfg.Logger.Info("the member is asked to stop: it takes nothing new, and hands over what it owns where there are others")
			if o.membership.leave() {
				e.settle(o.member)
			}
		case <-o.member.Lost():
		case <-serving.Done():
		}
	}()
	if err := o.server.Serve(serving, l); err != nil {
		o.membership.leave() // others cannot reach it
		return false, err
	}
	switch {
	case ctx.Err() == nil && o.member.Rewound() != nil:
		return true, nil
	case ended(o.member):
		return false, errors.New("the member was fenced off, since its lease had run out: it had to end, others do its work")
	}
	return false, nil
}

// listen is where the API answers.
func (e *Engine) listen(l net.Listener) (_ net.Listener, err error) {
	if l == nil {
		l = e.cfg.Listener
	}
	if l == nil {
		if l, err = Listen(e.cfg); err != nil {
			return nil, err
		}
	}
	if err := e.cfg.checkListen(l.Addr().String()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lost() {
		e.bury()
	}
	e.serves = true
	return l, nil
}

// unserve says that the API listens no longer.
func (e *Engine) unserve() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.serves = false
	if e.lost() {
		e.told = e.member
	}
}

func (e *Engine) server(asked engine.Engine) (*api.Server, error) {
	typed, err := e.v1(asked)
	if err != nil {
		return nil, err
	}
	from, streams := e.from(asked), attach.Workers{Sessions: e.attached, MaxMessage: api.BodyLimit(e.cfg.Limits)}
	return api.New(api.Config{
		Member: from, Families: []api.Family{graph.New(from), pgflow.New(from), ork.New(from, e.orkOptions()), typed, streams},
		TLS: e.tls, Tokens: e.cfg.Tokens, AllowOrigins: e.cfg.AllowOrigins, AllowHosts: e.cfg.hosts(), Collectors: e.collectors(),
		Apart: e.membership.routes(), Pages: e.cfg.UI,
	})
}

func (e *Engine) orkOptions() ork.Options {
	o := ork.Options{Root: e.cfg.ScriptDir, Workers: e.cfg.OrkWorkers}
	if e.cfg.AllowScripts {
		o.Programs = e.programs
	}
	return o
}

// collectors are all metrics of this life of the member.
func (e *Engine) collectors() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{e.rewinds}, e.member.Collectors(), e.attached.Collectors(), e.workers.Collectors(), e.membership.collectors(), e.spans.Collectors())
}
