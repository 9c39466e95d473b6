package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/attach"
	apiv1 "github.com/troupe-engine/troupe/api/v1"
	"github.com/troupe-engine/troupe/api/v1/cluster"
	"github.com/troupe-engine/troupe/dialect/ork/orkhttp"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/worker"
)

// idleSessions accepts attached workers and ignores them. It reports when a stream has begun and
// ended.
type idleSessions struct{ told chan string }

func (n idleSessions) Serve(_ context.Context, s attach.Stream) error {
	for told := "begun"; ; told = "" {
		if _, err := s.Receive(); err != nil {
			n.told <- "ended"
			return err
		}
		if told != "" {
			n.told <- told
		}
	}
}
func (idleSessions) Leave()  {}
func (idleSessions) Return() {}

// serveAll starts a server with every family of routes, and a token "of ROLE" for each role.
func serveAll(t *testing.T) *serving { return serveAttached(t, make(chan string, 100)) }

// serveAttached does the same and reports when streams of workers begin and end.
func serveAttached(t *testing.T, told chan string) *serving {
	t.Helper()
	s := serve(t, api.Config{Tokens: []string{"of the start"}}, func(s *api.Server) {
		api.TokensAge(s, 100*time.Millisecond)
		from := api.MemberOf(s)
		typed, err := apiv1.New(apiv1.Config{Member: from, Cluster: none{}})
		require.NoError(t, err)
		for _, f := range []api.Family{orkhttp.New(from, orkhttp.Options{}), typed,
			attach.Workers{Sessions: idleSessions{told}, MaxMessage: 1 << 20}} {
			f.Mount(s)
		}
	})
	for _, role := range api.Roles {
		hash := sha256.Sum256([]byte("of " + string(role)))
		require.NoError(t, s.AddToken(t.Context(), persistence.Token{ID: "id-" + string(role),
			Name: "the-" + string(role), Role: string(role), Hash: hash[:], CreatedAt: 1}))
	}
	return s
}

// none is a cluster that no test calls.
type none struct{ cluster.Cluster }

// openRoutes need no token, or check their callers themselves.
var openRoutes = []string{
	"/", "/api/", // unknown paths
	"GET /healthz", "GET /readyz",
	"/v1/", // has a table of its own
	"POST /v1/hooks/{hook}", "POST /v1/session", "GET /v1/approve/{approval}", "POST /v1/approve/{approval}", "DELETE /v1/session",
	"GET /v1/docs", "GET /v1/openapi.json", "GET /v1/openapi.yaml", "GET /v1/schema/flow.json",
}

func TestEveryRouteHasRoles(t *testing.T) {
	s := serveAll(t)
	var by, open []string
	for pattern, byRole := range api.Routed(s.Server) {
		if byRole {
			by = append(by, api.PathOf(pattern))
		} else {
			open = append(open, pattern)
		}
	}
	slices.Sort(by)
	require.ElementsMatch(t, openRoutes, open)
	require.ElementsMatch(t, slices.Compact(by), api.RoleRoutes(), "each route has a row, and each row a route")

	described := s.operations(t)
	for id, o := range described {
		if len(o.Roles) == 1 { // the default of an operation without a row
			require.Contains(t, []string{"list-tokens", "create-token", "delete-token"}, id,
				"it has no row, or is one for admins that this test does not know")
		}
		if len(o.Roles) == 0 {
			require.Contains(t, []string{"open-session", "close-session", "deliver", "get-linked-approval", "answer-linked-approval"}, id)
		}
	}
	require.Greater(t, len(described), 80)
}

type described struct {
	method, path string
	ID           string     `json:"operationId"`
	Roles        []api.Role `json:"x-roles"`
}

// operations returns the operations of the description by id.
func (s *serving) operations(t *testing.T) map[string]described {
	_, text := s.do(t, "GET", "/v1/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]described
	}
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	all := map[string]described{}
	for path, methods := range doc.Paths {
		for method, o := range methods {
			o.method, o.path = strings.ToUpper(method), path
			all[o.ID] = o
		}
	}
	return all
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// refusedByRole reports whether a token may not call a route for its role.
func (s *serving) refusedByRole(t *testing.T, method, path string, role api.Role) bool {
	t.Helper()
	resp, text := s.do(t, method, placeholder.ReplaceAllString(path, "x"), "", "Authorization", "Bearer of "+string(role))
	require.NotEqual(t, http.StatusUnauthorized, resp.StatusCode, "%s %s", method, path)
	refused := resp.StatusCode == http.StatusForbidden && strings.Contains(text, "this needs the role ")
	if refused {
		require.Contains(t, text, "the token the-"+string(role)+" has the role "+string(role))
	}
	return refused
}

var (
	ofWorkers = regexp.MustCompile(`^/troupe\.attach\.|^/queue/|^(/workers)?/(register|heartbeat)$`)
	ofBoth    = regexp.MustCompile(`^/queue/complete$|^/workers/deregister$|^/runs/.*/(complete|fail)$`)
	asks      = regexp.MustCompile(`^/(metrics|tasks/(get|runs|logs)|flows/version/get|(workers/)?(list|allocate))$`)
	publishes = regexp.MustCompile(`^/(flows|workflows)(/.*)?$`)
	starts    = regexp.MustCompile(`/runs$`)
)

// promised returns the roles that docs/how-to/access.md promises for a route outside /v1. It is
// derived from the path alone, independently of the server's table.
func promised(method, path string) api.Need {
	reads := method == "GET" || method == "HEAD"
	switch {
	case ofBoth.MatchString(path) && (!reads || !strings.HasPrefix(path, "/runs/")):
		return api.ForOperatorsOrWorkers
	case ofWorkers.MatchString(path):
		return api.ForWorkers
	case reads, asks.MatchString(path):
		return api.ForViewers
	case path == "/tasks/signal":
		return api.ForApprovers
	case publishes.MatchString(path) && !starts.MatchString(path):
		return api.ForAuthors
	}
	return api.ForOperators
}

// answers reports whether a route has a handler for a method.
func (s *serving) answers(t *testing.T, method, path string) bool {
	resp, text := s.do(t, method, placeholder.ReplaceAllString(path, "x"), "", "Authorization", "Bearer of admin")
	return resp.StatusCode != http.StatusMethodNotAllowed && !strings.Contains(text, "there is no such route")
}

// On each route, callers without a suitable role are rejected and the others are not. Other faults
// of these requests do not matter.
func TestRolesMayDoExactlyWhatIsPromised(t *testing.T) {
	s := serveAll(t)
	asked := 0
	for pattern, byRole := range api.Routed(s.Server) {
		if !byRole {
			continue
		}
		method, path, ok := strings.Cut(pattern, " ")
		methods := []string{method}
		if !ok {
			methods, path = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}, pattern
		}
		for _, method := range methods {
			if !s.answers(t, method, path) {
				continue
			}
			asked++
			for _, role := range api.Roles {
				require.Equal(t, !promised(method, api.PathOf(path)).May(role),
					s.refusedByRole(t, method, path, role), "%s %s as %s", method, path, role)
			}
		}
	}
	require.Greater(t, asked, 80)
	for id, o := range s.operations(t) {
		// this test has no cluster
		if len(o.Roles) == 0 || id == "list-members" || id == "list-shards" {
			continue
		}
		for _, role := range api.Roles {
			if role == api.Admin || slices.Contains(o.Roles, role) && strings.Contains(id, "member") {
				continue
			}
			require.Equal(t, !slices.Contains(o.Roles, role), s.refusedByRole(t, o.method, o.path, role), "%s as %s", id, role)
		}
	}
}

func TestRolesArePoweredOneAboveTheOther(t *testing.T) {
	for _, need := range []api.Need{api.ForViewers, api.ForApprovers, api.ForOperators, api.ForAuthors, api.ForAdmins} {
		may := false
		for _, role := range []api.Role{api.Viewer, api.Approver, api.Operator, api.Author, api.Admin} {
			require.False(t, may && !need.May(role), "%s may not what one below it may", role)
			may = need.May(role)
		}
		require.False(t, need.May(api.Worker))
		require.False(t, need.May(""))
	}
	require.True(t, api.ForWorkers.May(api.Admin))
	require.False(t, api.ForWorkers.May(api.Author))
	require.Equal(t, "operator or worker", api.ForOperatorsOrWorkers.String())
	require.Equal(t, "admin", api.Need(nil).String())
}

func TestTokensOfTheStoreComeAndGo(t *testing.T) {
	s := serveAll(t)
	status := func(token string) int {
		resp, _ := s.do(t, "GET", "/v1/me", "", "Authorization", "Bearer "+token)
		return resp.StatusCode
	}
	require.Equal(t, 200, status("of viewer"))
	require.Equal(t, 401, status("of nobody"))
	require.NoError(t, s.DeleteToken(t.Context(), "id-viewer"))
	require.Equal(t, 401, status("of viewer"), "a deleted one is good no longer, at once")

	now := time.Now().UnixMilli()
	for name, until := range map[string]int64{"over": now - 1, "good": now + time.Hour.Milliseconds()} {
		hash := sha256.Sum256([]byte(name))
		require.NoError(t, s.AddToken(t.Context(), persistence.Token{ID: name, Name: name,
			Role: "viewer", Hash: hash[:], ExpiresAt: until}))
	}
	require.Equal(t, 401, status("over"))
	require.Equal(t, 200, status("good"))
	list, err := s.store.ListTokens(t.Context())
	require.NoError(t, err)
	for _, token := range list {
		if token.Name == "good" {
			require.GreaterOrEqual(t, token.LastUsedAt, now)
		} else if token.Name == "over" || token.Name == "the-author" {
			require.Zero(t, token.LastUsedAt)
		}
	}
}

func TestStreamsEndWithTheirTokens(t *testing.T) {
	told := make(chan string, 100)
	s := serveAttached(t, told)
	conn, _, err := websocket.Dial(t.Context(), s.url+"/v1/ws",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer of viewer"}}})
	require.NoError(t, err)
	defer conn.CloseNow()
	w := worker.New(worker.Config{Server: s.url, Token: "of worker", Attach: true})
	w.Handle("x", func(context.Context, worker.Job) (any, error) { return nil, nil })
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	require.Equal(t, "begun", <-told)

	require.NoError(t, s.DeleteToken(t.Context(), "id-viewer"))
	_, _, err = conn.Read(t.Context())
	require.Error(t, err)
	require.Empty(t, told, "others go on")
	require.NoError(t, s.DeleteToken(t.Context(), "id-worker"))
	require.Equal(t, "ended", <-told)
	require.ErrorIs(t, <-ended, worker.ErrDenied)
}

func TestASignalRecordsTheNameOfItsToken(t *testing.T) {
	s := serveAll(t)
	admin, approver := []string{"Authorization", "Bearer of admin"}, []string{"Authorization", "Bearer of approver"}
	resp, text := s.do(t, "PUT", "/v1/flows/asks",
		`{"start":"a","nodes":{"a":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}`,
		append(admin, "Content-Type", "application/json")...)
	require.Equal(t, http.StatusCreated, resp.StatusCode, text)
	_, text = s.do(t, "POST", "/v1/tasks", `{"flow":"asks"}`, append(admin, "Content-Type", "application/json")...)
	var task struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(text), &task))
	resp, text = s.do(t, "POST", "/api/tasks/signal",
		`{"task_id":"`+task.ID+`","key":"ok","value":true,"by":"the head of sales"}`,
		append(approver, "Content-Type", "application/json")...)
	require.Equal(t, http.StatusOK, resp.StatusCode, text)
	_, text = s.do(t, "GET", "/v1/tasks/"+task.ID+"/events", "", admin...)
	require.Contains(t, text, `"sent_by":"the-approver for the head of sales"`)
}
