package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// Role is what who asks may do. Each of those for people may do what the one before it may; a
// worker carries out jobs and does nothing else.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"   // sees everything but tokens, and changes nothing
	Approver Role = "approver" // answers what tasks ask people
	Operator Role = "operator" // starts and steers tasks, schedules' firing, workers and members
	Author   Role = "author"   // publishes flows, schedules and hooks
	Admin    Role = "admin"    // makes tokens; may do what workers do, too
	Worker   Role = "worker"
)

// Roles are all of them.
var Roles = []Role{Viewer, Approver, Operator, Author, Admin, Worker}

// Need says which roles may call a route, the least one first. An admin may call every route, so
// the zero Need is for admins alone.
type Need []Role

// Who may call what.
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

// String names the least role that may, and the worker's where that may, too.
func (n Need) String() string {
	if len(n) == 0 {
		return string(Admin)
	}
	if n[0] != Worker && slices.Contains(n, Worker) {
		return string(n[0]) + " or " + string(Worker)
	}
	return string(n[0])
}

// Identity is who asks.
type Identity struct {
	Name  string // of the token; "" = no token is needed here
	Role  Role
	Token string // its id, when it is one of the store; "" = the server was started with it
}

// Who asks in the request that a context belongs to.
func Who(ctx context.Context) Identity {
	if n, ok := ctx.Value(requestKey{}).(*requestNotes); ok {
		return n.caller
	}
	return Identity{}
}

// Signer is who sends a signal or gives an answer: whose token it is, of those that have names, and
// who that says it is for.
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

// KnowsToken reports whether a token of the store is good still.
func (s *Server) KnowsToken(ctx context.Context, id string) (bool, error) {
	t, err := s.guard.stored.findToken(ctx, byID(id))
	return t != nil, err
}

// Forbidden says why who asks may not call a route, nil when it may.
func Forbidden(ctx context.Context, need Need) *wire.Problem {
	who := Who(ctx)
	if need.May(who.Role) {
		return nil
	}
	NoteRefusal(ctx, "the token's role may not do it")
	why := problemOf(flow.Denied, "header.Authorization", "this needs the role "+need.String()+", and the token "+who.Name+" has the role "+string(who.Role),
		"use a token of that role, or have an admin make one (troupe token create)")
	return &why
}

// byMethod says who may read a route of a dialect, and who may do something there.
type byMethod struct{ read, write Need }

func (b byMethod) needFor(method string) Need {
	if method == http.MethodGet || method == http.MethodHead {
		return b.read
	}
	return b.write
}

// requireRole lets in those whose role may call the route of a pattern. What nobody has thought of
// is for admins.
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

// pathOf is a pattern without its method, and without the prefix that dialects have beside their
// bare paths.
func pathOf(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		pattern = path
	}
	return strings.TrimPrefix(pattern, "/api")
}
