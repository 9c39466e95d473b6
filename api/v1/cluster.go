package v1

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Cluster manages the members. Its errors are flow.NotFound for an unknown member, and
// flow.Conflict for an action that is impossible.
type Cluster interface {
	Members(ctx context.Context) (*wire.Cluster, error)
	// CountMembers counts the members without reading tasks.
	CountMembers(ctx context.Context) (*wire.MemberCount, error)
	// Shards describes the shard of one task, or all shards if task is "".
	Shards(ctx context.Context, task string) (*wire.Shards, error)
	// Drain makes a member, given by name or incarnation, own no shards from now on, or cancels
	// that.
	Drain(ctx context.Context, member string, drains bool) (*wire.Member, error)
}

// clusterHandler serves the members of the cluster and the settings of this one.
type clusterHandler struct {
	router  *apiRouter
	engine  engine.Engine
	cluster Cluster
	info    wire.Info // of this member, without the time
}

func (h *clusterHandler) addClusterRoutes(rt *apiRouter) {
	if h.cluster == nil {
		return
	}
	registerOperation(rt, apiOperation{id: "list-members", method: http.MethodGet, path: "/v1/cluster/members", tag: "cluster",
		summary: "List the members of the cluster",
		text: "It says the same on every member: it is read from the store, which decides. " +
			"Tasks are counted, which takes longer the more there are that have not ended."}, h.listMembers)
	registerOperation(rt, apiOperation{id: "list-shards", method: http.MethodGet, path: "/v1/cluster/shards", tag: "cluster",
		summary: "List who owns which shards, and which moved"}, h.getShards)
	registerOperation(rt, apiOperation{id: "drain-member", method: http.MethodPost,
		path: "/v1/cluster/members/{member}/drain", tag: "cluster",
		summary: "Have a member hand its tasks over",
		text: "It lives on and answers requests, and takes no tasks until it is started " +
			"again, or DELETE says that it stays. Any member may be asked. A second time " +
			"changes nothing."}, h.drainMember)
	registerOperation(rt, apiOperation{id: "undrain-member", method: http.MethodDelete,
		path: "/v1/cluster/members/{member}/drain", tag: "cluster",
		summary: "Have a member take tasks again"}, h.undrainMember)
}

func (h *clusterHandler) listMembers(ctx context.Context, _ *struct{}) (*bodyResponse[wire.Cluster], error) {
	return toResponse(h.cluster.Members(ctx))
}

type shardsInput struct {
	Task string `query:"task" maxLength:"256" doc:"id of a task: only its shard is told"`
}

func (h *clusterHandler) getShards(ctx context.Context, in *shardsInput) (*bodyResponse[wire.Shards], error) {
	return toResponse(h.cluster.Shards(ctx, in.Task))
}

// MemberPath identifies a member.
type MemberPath struct {
	Member string `path:"member" minLength:"1" maxLength:"256" doc:"name or incarnation of the member"`
}

func (h *clusterHandler) drainMember(ctx context.Context, in *MemberPath) (*bodyResponse[wire.Member], error) {
	return h.setDraining(ctx, in.Member, true)
}

func (h *clusterHandler) undrainMember(ctx context.Context, in *MemberPath) (*bodyResponse[wire.Member], error) {
	return h.setDraining(ctx, in.Member, false)
}

func (h *clusterHandler) setDraining(ctx context.Context, member string, drains bool) (*bodyResponse[wire.Member], error) {
	m, err := toResponse(h.cluster.Drain(ctx, member, drains))
	switch {
	case api.Missing(err):
		return nil, newNotFoundError("path.member", "GET /v1/cluster/members lists them", "no member %.80q lives in this cluster", member)
	case flow.ErrorKindOf(err) == flow.Conflict:
		return nil, &locatedError{where: "path.member", hint: "GET /v1/cluster/members tells how they are", err: err}
	}
	return m, err
}

// toResponse returns an answer that has only a body.
func toResponse[T any](found *T, err error) (*bodyResponse[T], error) {
	if err != nil {
		return nil, err
	}
	return &bodyResponse[T]{*found}, nil
}
