package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// Role is the set of permissions of a caller. Each role for people includes the previous one. A
// worker only carries out jobs.
type Role string

// These are the roles.
const (
	Viewer   Role = "viewer"   // reads everything except tokens, changes nothing
	Approver Role = "approver" // answers approvals
	// starts and controls tasks, triggers schedules, manages workers and members
	Operator Role = "operator"
	Author   Role = "author" // publishes flows, schedules and hooks
	Admin    Role = "admin"  // creates tokens, and may do everything, including requests of workers
	Worker   Role = "worker"
)

// Roles holds all roles.
var Roles = []Role{Viewer, Approver, Operator, Author, Admin, Worker}

// Need lists the roles that may call a route, the least one first. The zero Need allows admins
// only, because an admin may call every route.
type Need []Role

// These are the combinations of roles that routes need.
var (
	ForAll                = Need{Viewer, Approver, Operator, Author, Worker}
	ForViewers            = Need{Viewer, Approver, Operator, Author}
	ForApprovers          = Need{Approver, Operator, Author}
	ForOperators          = Need{Operator, Author}
	ForAuthors            = Need{Author}
	ForAdmins             = Need{}
	ForWorkers            = Need{Worker}
	ForOperatorsOrWorkers = Need{Operator, Author, Worker}
)

// May reports whether a role may call the route.
func (n Need) May(r Role) bool { return r == Admin || slices.Contains(n, r) }

// String returns the least role that may call the route, and also the worker role if it is allowed.
func (n Need) String() string {
	if len(n) == 0 {
		return string(Admin)
	}
	if n[0] != Worker && slices.Contains(n, Worker) {
		return string(n[0]) + " or " + string(Worker)
	}
	return string(n[0])
}

// Identity is the caller of a request.
type Identity struct {
	Name  string // name of the caller's token; "" if no token is needed
	Role  Role
	Token string // id of a token of the store; "" for a start token
}

// Who returns the caller of the request that a context belongs to.
func Who(ctx context.Context) Identity {
	if n, ok := ctx.Value(requestKey{}).(*requestNotes); ok {
		return n.caller
	}
	return Identity{}
}

// Signer returns the name to record with a signal or an answer. It combines the name of the
// caller's token, if any, with the name in by.
func Signer(ctx context.Context, by string) string {
	who := Who(ctx)
	switch {
	case who.Token == "" || by == who.Name:
		return by
	case by == "":
		return who.Name
	}
	both := who.Name + " for " + by
	return strings.ToValidUTF8(both[:min(len(both), flow.MaxName)], "")
}

// KnowsToken reports whether a token of the store is still valid.
func (s *Server) KnowsToken(ctx context.Context, id string) (bool, error) {
	t, err := s.guard.stored.findToken(ctx, byID(id))
	return t != nil, err
}

// Forbidden returns the reason why the caller may not call a route; nil if the caller may.
func Forbidden(ctx context.Context, need Need) *wire.Problem {
	who := Who(ctx)
	if need.May(who.Role) {
		return nil
	}
	NoteRefusal(ctx, "the token's role may not do it")
	why := problemOf(flow.Denied, "header.Authorization",
		"this needs the role "+need.String()+", and the token "+who.Name+" has the role "+string(who.Role),
		"use a token of that role, or ask an admin to create one (troupe token create)")
	return &why
}

// byMethod holds the roles that may read a route of a dialect, and the roles that may write to it.
type byMethod struct{ read, write Need }

func (b byMethod) needFor(method string) Need {
	if method == http.MethodGet || method == http.MethodHead {
		return b.read
	}
	return b.write
}

// requireRole rejects callers without a role for the route of a pattern. Routes without an entry
// are for admins.
func (s *Server) requireRole(pattern string, next http.Handler) http.Handler {
	may := routeRoles[pathOf(pattern)]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := Forbidden(r.Context(), may.needFor(r.Method)); why != nil {
			refuseRequest(w, r, *why)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// pathOf returns a pattern without its method and without the prefix /api, which dialects use in
// addition to bare paths.
func pathOf(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		pattern = path
	}
	return strings.TrimPrefix(pattern, "/api")
}
