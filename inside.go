package troupe

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/client"
	v1 "github.com/troupe-engine/troupe/api/v1"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/member/inprocess"
	"github.com/troupe-engine/troupe/member/layers"
	"github.com/troupe-engine/troupe/member/membership"
)

// newClient returns a client of the member in this process. It does not retry: the program gets
// ErrBusy.
func (e *Engine) newClient() (*client.Client, error) {
	inside := &inprocess.Transport{Routes: e.currentRoutes, Closed: e.ctx, Payloads: e.stores.Payloads,
		Logger: e.cfg.Logger}
	return client.New("http://troupe.internal", client.Options{HTTPClient: &http.Client{Transport: inside}, Retries: -1})
}

// currentRoutes returns the /v1 routes of the present life of the member. They are created on the
// first call.
func (e *Engine) currentRoutes(ctx context.Context) (http.Handler, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ensureMember(ctx); err != nil {
		return nil, err
	}
	asked := *e.currentEngine.Load()
	if e.own.routes != nil && e.own.engine == asked {
		return e.own.routes, nil
	}
	routes, err := e.newV1Routes(asked)
	if err != nil {
		return nil, err
	}
	e.own = ownRoutes{asked, routes}
	return routes, nil
}

// ownRoutes are the routes that the program itself calls, in one life of the member.
type ownRoutes struct {
	engine engine.Engine
	routes http.Handler
}

// apiMember returns the parts of the member that all families of routes use.
func (e *Engine) apiMember(asked engine.Engine) api.Member {
	return api.Member{Engine: asked, Store: e.stores.Newest, Reader: e.stores.Reader,
		Registry: e.workers, Logs: e.logs, Streams: e.streams, Payloads: e.stores.Payloads,
		Limits: e.cfg.Limits, Secret: e.secrets.Listed, Func: e.functions.Check, WorkerTTL: e.cfg.WorkerTTL, Logger: e.cfg.Logger}
}

func (e *Engine) newV1Routes(asked engine.Engine) (v1.Routes, error) {
	from := e.apiMember(asked)
	return v1.New(v1.Config{
		Member: from, Version: Version(), StoreKind: layers.StoreKind(e.cfg.Store),
		Name: e.cfg.Name, TraceURL: e.cfg.TraceURL, LogURL: e.cfg.LogURL,
		Cluster:  membership.NewAdmin(e.cfg.Cluster, e.member.Incarnation(), e.stores.Newest, e.membership),
		Channels: dialectChannels(from),
	})
}
