// Package cluster serves the members of the cluster, their shards, and the settings of a member.
package cluster

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Cluster manages the members. It returns flow.NotFound for an unknown member, and flow.Conflict
// for an impossible action.
type Cluster interface {
	Members(ctx context.Context) (*wire.Cluster, error)
	// CountMembers counts the members without reading tasks.
	CountMembers(ctx context.Context) (*wire.MemberCounts, error)
	// Shards describes the shard of one task, or all shards if task is "".
	Shards(ctx context.Context, task string) (*wire.Shards, error)
	// Drain sets whether a member, given by name or incarnation, should own no shards.
	Drain(ctx context.Context, member string, drains bool) (*wire.Member, error)
}

// Handler serves the members of the cluster and the settings of this one.
type Handler struct {
	Router  *route.Router
	Engine  engine.Engine
	Cluster Cluster
	Info    wire.ServerInfo // data of this member, without the time
}

// AddRoutes adds the routes of the handler.
func (h *Handler) AddRoutes(rt *route.Router) {
	h.addMemberRoutes(rt)
	h.addClusterRoutes(rt)
}

func (h *Handler) addClusterRoutes(rt *route.Router) {
	if h.Cluster == nil {
		return
	}
	route.Register(rt, route.Operation{ID: "list-members", Method: http.MethodGet, Path: "/v1/cluster/members", Tag: "cluster",
		Summary: "List the members of the cluster",
		Text: "The answer is the same on every member, because it is read from the store. It counts " +
			"tasks, which takes longer with more tasks that have not ended."}, h.listMembers)
	route.Register(rt, route.Operation{ID: "list-shards", Method: http.MethodGet, Path: "/v1/cluster/shards", Tag: "cluster",
		Summary: "List shards with their owners and moves"}, h.getShards)
	route.Register(rt, route.Operation{ID: "drain-member", Method: http.MethodPost,
		Path: "/v1/cluster/members/{member}/drain", Tag: "cluster",
		Summary: "Drain a member",
		Text: "The member hands its tasks over to other members. It keeps running and answering " +
			"requests, and takes no tasks until it is restarted or the drain is deleted. Any " +
			"member accepts the request. A repetition changes nothing."}, h.drainMember)
	route.Register(rt, route.Operation{ID: "undrain-member", Method: http.MethodDelete,
		Path: "/v1/cluster/members/{member}/drain", Tag: "cluster",
		Summary: "End the drain of a member"}, h.undrainMember)
}

func (h *Handler) listMembers(ctx context.Context, _ *struct{}) (*route.Response[wire.Cluster], error) {
	return route.NewResponse(h.Cluster.Members(ctx))
}

type shardsInput struct {
	Task string `query:"task" maxLength:"256" doc:"ID of a task, to get only its shard."`
}

func (h *Handler) getShards(ctx context.Context, in *shardsInput) (*route.Response[wire.Shards], error) {
	return route.NewResponse(h.Cluster.Shards(ctx, in.Task))
}

// MemberPath identifies a member.
type MemberPath struct {
	Member string `path:"member" minLength:"1" maxLength:"256" doc:"Name or incarnation of the member."`
}

func (h *Handler) drainMember(ctx context.Context, in *MemberPath) (*route.Response[wire.Member], error) {
	return h.setDraining(ctx, in.Member, true)
}

func (h *Handler) undrainMember(ctx context.Context, in *MemberPath) (*route.Response[wire.Member], error) {
	return h.setDraining(ctx, in.Member, false)
}

func (h *Handler) setDraining(ctx context.Context, member string, drains bool) (*route.Response[wire.Member], error) {
	m, err := route.NewResponse(h.Cluster.Drain(ctx, member, drains))
	switch {
	case api.Missing(err):
		return nil, route.NewNotFoundError("path.member", "GET /v1/cluster/members lists them",
			"there is no live member %.80q in this cluster", member)
	case flow.ErrorKindOf(err) == flow.Conflict:
		return nil, &route.LocatedError{Where: "path.member", Hint: "GET /v1/cluster/members returns the states of all members", Err: err}
	}
	return m, err
}
