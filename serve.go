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
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/member/membership"
)

// Serve answers the HTTP API until ctx ends. If l is nil, it listens at the address of the Config.
//
// When ctx ends, a member of a cluster hands over its tasks and lets its jobs finish before it
// stops answering. It accepts no new work then; only Close is left to call. Serve returns an error
// if the member was fenced. If the store went back in time, the member starts again: connections
// break, and new ones wait until it has started.
func (e *Engine) Serve(ctx context.Context, l net.Listener) error {
	l, err := e.openListener(l)
	if err != nil {
		return err
	}
	defer e.stopServing()
	one, err := e.currentLife(ctx)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	e.cfg.Logger.Info("API listening", "address", l.Addr().String(), "tls", e.cfg.TLSCert != "", "tokens", len(e.cfg.Tokens))
	defer l.Close()
	for one != nil {
		member := one.member
		rewound, err := one.serveAPI(ctx, e, openDoor(l, func() bool { return ctx.Err() == nil && member.Rewound() != nil }))
		if !rewound {
			return err
		}
		one = e.nextLife(ctx)
	}
	return nil
}

// servedLife is one life of the member, and the server that answers in it.
type servedLife struct {
	member     *actors.Member
	membership *membership.Membership
	server     *api.Server
}

// currentLife returns the present life; it starts one if there is none.
func (e *Engine) currentLife(ctx context.Context) (*servedLife, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ensureMember(ctx); err != nil {
		return nil, err
	}
	server, err := e.newServer(*e.currentEngine.Load())
	if err != nil {
		return nil, err
	}
	return &servedLife{e.member, e.membership, server}, nil
}

// nextLife starts another life after the store went back in time, and retries until that succeeds.
// It returns nil if ctx ends first, or if the engine is closed.
func (e *Engine) nextLife(ctx context.Context) *servedLife {
	for pause := firstRevival; ; pause = min(2*pause, mostRevival) {
		one, err := e.currentLife(ctx)
		if err == nil {
			return one
		}
		e.cfg.Logger.Warn("restarting the member failed, retrying", "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		case <-e.ctx.Done():
			return nil
		}
	}
}

// serveAPI answers the API during one life. rewound reports that the life ended because the store
// went back in time.
func (o *servedLife) serveAPI(ctx context.Context, e *Engine, l net.Listener) (rewound bool, err error) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() { // ends with the serving below
		defer stop()
		select {
		case <-ctx.Done():
			e.cfg.Logger.Info("member stopping: it accepts no new work and hands over its tasks to other members")
			if o.membership.Leave() {
				e.settleJobs(o.member)
			}
		case <-o.member.Lost():
		case <-serving.Done():
		}
	}()
	if err := o.server.Serve(serving, l); err != nil {
		o.membership.Leave() // others cannot reach it
		return false, err
	}
	switch {
	case ctx.Err() == nil && o.member.Rewound() != nil:
		return true, nil
	case isFenced(o.member):
		return false, errors.New("the member was fenced off, since its lease had run out: it had to end, others do its work")
	}
	return false, nil
}

// openListener returns the listener of the API.
func (e *Engine) openListener(l net.Listener) (_ net.Listener, err error) {
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
	if e.isLost() {
		e.discardMember()
	}
	e.serves = true
	return l, nil
}

// stopServing notes that the API no longer listens.
func (e *Engine) stopServing() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.serves = false
	if e.isLost() {
		e.reportedLoss = e.member
	}
}

func (e *Engine) newServer(asked engine.Engine) (*api.Server, error) {
	typed, err := e.newV1Routes(asked)
	if err != nil {
		return nil, err
	}
	from, streams := e.apiMember(asked), attach.Workers{Sessions: e.attached, MaxMessage: api.BodyLimit(e.cfg.Limits)}
	return api.New(api.Config{
		Member: from, Families: append(dialectFamilies(from, e.orkOptions()), typed, streams),
		TLS: e.tls, Tokens: e.cfg.Tokens, AllowOrigins: e.cfg.AllowOrigins,
		AllowHosts: e.cfg.allowedHosts(), Collectors: e.metricCollectors(),
		Apart: e.membership.Routes(), Pages: e.cfg.UI,
	})
}

// metricCollectors returns all metrics of this life of the member.
func (e *Engine) metricCollectors() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{e.rewinds}, e.member.Collectors(),
		e.attached.Collectors(), e.workers.Collectors(), e.membership.Collectors(),
		e.spans.Collectors())
}
