package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/api/transport"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// accessGuard decides from origin, host, certificate and token which requests are admitted. It does
// not check roles.
type accessGuard struct {
	tokens  [][sha256.Size]byte
	origins []string
	hosts   []string
	certs   *transport.Certificates
	stored  *storedTokens
}

func newGuard(cfg Config) *accessGuard {
	g := &accessGuard{origins: lowerAll(cfg.AllowOrigins), hosts: lowerAll(cfg.AllowHosts),
		certs: cfg.TLS, stored: newStoredTokens(cfg.Store)}
	for _, t := range cfg.Tokens {
		g.tokens = append(g.tokens, sha256.Sum256([]byte(t)))
	}
	return g
}

func lowerAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(s)
	}
	return out
}

// checkAccess returns the reason to reject a request regardless of its caller; nil if the request
// is admitted.
func (g *accessGuard) checkAccess(r *http.Request) *wire.Problem {
	var why wire.Problem
	switch {
	case g.certs.Lacks(r):
		why = problemOf(flow.Denied, "", "a client certificate is needed, of an authority that "+
			"this server trusts", "show one (--client-cert, --client-key)")
	case !g.knowsHost(r):
		why = problemOf(flow.Denied, "header.Host", "the host "+clipText(r.Host)+" is not served here",
			"use localhost or the address this server listens on, or start the server with --allow-host")
	case !g.knowsOrigin(r):
		why = problemOf(flow.Denied, "header.Origin", "requests from the origin "+clipText(r.Header.Get("Origin"))+" are refused",
			"start the server with --allow-origin")
	case !g.knowsSite(r):
		why = problemOf(flow.Denied, "header.Sec-Fetch-Site", "requests of pages of other sites are refused",
			"start the server with --allow-origin for the page's origin, and have it ask in mode cors")
	default:
		return nil
	}
	return &why
}

// knowsHost reports whether a request's Host is local, the address of the connection, or
// configured. This rejects host names that an attacker's DNS points to this server (DNS rebinding).
func (g *accessGuard) knowsHost(r *http.Request) bool {
	host := strings.ToLower(hostOnly(r.Host))
	if isLoopback(host) || slices.Contains(g.hosts, "*") || slices.Contains(g.hosts, host) ||
		slices.Contains(g.hosts, strings.ToLower(r.Host)) {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && hostOnly(local.String()) == host
}

// knowsOrigin reports whether a request has no Origin, or an Origin of this server, this computer
// or the configuration.
func (g *accessGuard) knowsOrigin(r *http.Request) bool {
	origin := strings.ToLower(r.Header.Get("Origin"))
	if origin == "" || slices.Contains(g.origins, "*") || slices.Contains(g.origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return strings.EqualFold(u.Host, r.Host) || isLoopback(u.Hostname())
}

// knowsSite rejects requests that browsers make for pages of other sites without an Origin, such as
// images, scripts and frames. It admits links, because only the user who follows the link sees the
// result.
func (g *accessGuard) knowsSite(r *http.Request) bool {
	if r.Header.Get("Origin") != "" || slices.Contains(g.origins, "*") {
		return true // the origin was checked, or every origin is allowed
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	case "same-site":
		return isLoopback(hostOnly(r.Host))
	case "cross-site":
		return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
			r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	}
	return false
}

// These are the identities of callers without a token of the store. They may do everything, because
// they sent a start token, or no token is needed.
var (
	anybody = Identity{Role: Admin}
	starter = Identity{Name: "flag", Role: Admin}
)

// identifyCaller returns the identity of a request's caller, or the reason to reject the request.
func (g *accessGuard) identifyCaller(r *http.Request) (Identity, *wire.Problem) {
	token := bearerToken(r)
	if len(g.tokens) == 0 {
		return anybody, nil
	}
	if g.knowsToken(token) {
		return starter, nil
	}
	look := g.inSession
	if token != "" {
		look = g.findHolder
	}
	found, err := look(r)
	switch {
	case err != nil:
		return Identity{}, lookupProblem(err)
	case found != nil:
		return *found, nil
	}
	return Identity{}, tokenProblem(token)
}

// tokenProblem describes the missing or wrong token of a request.
func tokenProblem(token string) *wire.Problem {
	why := problemOf(flow.Denied, "header.Authorization", "a bearer token is needed", "send Authorization: Bearer <token>")
	if token != "" {
		why.Message, why.Hint = "the bearer token is wrong: this server does not know it, or it "+
			"has expired", "send a token with which the server was started (--token, --token-file), "+
			"or a token that an admin has created (troupe token create)"
	}
	why.Status = http.StatusUnauthorized // a retry with another token may succeed
	return &why
}

// lookupProblem reports that the stored tokens could not be read.
func lookupProblem(err error) *wire.Problem {
	v := Judge(err)
	why := problemOf(v.Kind, "", "the tokens cannot be looked up: "+v.What, v.Hint)
	why.Status = http.StatusServiceUnavailable
	return &why
}

// findHolder returns the identity that belongs to the token of a request in the store.
func (g *accessGuard) findHolder(r *http.Request) (*Identity, error) {
	return g.lookUpIdentity(r, byHash(bearerToken(r)))
}

func (g *accessGuard) lookUpIdentity(r *http.Request, in func(*tokenList) *storedToken) (*Identity, error) {
	t, err := g.stored.findToken(r.Context(), in)
	if t == nil || err != nil {
		return nil, err
	}
	who := t.toIdentity()
	return &who, nil
}

// knowsToken reports whether a token is a start token. It compares all of them in constant time, so
// that timing reveals nothing.
func (g *accessGuard) knowsToken(token string) bool {
	sum := sha256.Sum256([]byte(token))
	found := 0
	for i := range g.tokens {
		found |= subtle.ConstantTimeCompare(sum[:], g.tokens[i][:])
	}
	return token != "" && found == 1
}

// apiKey is the header for the token in requests of Ork's clients.
const apiKey = "X-API-Key"

// bearerToken returns the token in the headers of a request; "" if there is none.
func bearerToken(r *http.Request) string {
	said := r.Header.Get("Authorization")
	if said == "" {
		return r.Header.Get(apiKey)
	}
	scheme, token, _ := strings.Cut(said, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func isLocalName(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// hostOnly removes the port and the brackets from a Host.
func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// clipText shortens a text from an unknown client before it is repeated in an answer.
func clipText(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
