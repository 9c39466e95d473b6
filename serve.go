package troupe

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/attach"
	"github.com/troupe-engine/troupe/api/graph"
	"github.com/troupe-engine/troupe/api/ork"
	"github.com/troupe-engine/troupe/api/pgflow"
	"github.com/troupe-engine/troupe/engine"
)

// Serve answers the HTTP API until ctx ends; l may be nil to listen where the Config says. A member of a cluster hands over
// what it owns and lets its jobs finish before it stops to answer, and takes nothing any more: what is left for it is Close. One that is fenced stops to
// answer with an error.
func (e *Engine) Serve(ctx context.Context, l net.Listener) error {
	l, err := e.listen(l)
	if err != nil {
		return err
	}
	defer e.unserve()
	asked, err := e.Member(ctx)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server, err := e.server(asked)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	e.cfg.Logger.Info("the API is served", "address", l.Addr().String(), "tls", e.cfg.TLSCert != "", "tokens", len(e.cfg.Tokens))
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() { // ends with the serving below
		defer stop()
		select {
		case <-ctx.Done():
			e.cfg.Logger.Info("the member is asked to stop: it takes nothing new, and hands over what it owns where there are others")
			if e.membership.leave() {
				e.settle()
			}
		case <-e.member.Lost():
		case <-serving.Done():
		}
	}()
	if err := server.Serve(serving, l); err != nil {
		e.membership.leave() // others cannot reach it
		return err
	}
	select {
	case <-e.member.Lost():
		return errors.New("the member was fenced off, since its lease had run out: it had to end, others do its work")
	default:
		return nil
	}
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
	return slices.Concat(e.member.Collectors(), e.attached.Collectors(), e.workers.Collectors(), e.membership.collectors(), e.spans.Collectors())
}
