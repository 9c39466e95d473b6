package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A browser cannot send a token with a WebSocket, and scripts of a page must not be able to read
// the token. So the browser gets a cookie. The cookie holds its expiry and the id of a token of the
// store, if any. It is signed with a key derived from a start token.
//
// Every member with the same start tokens accepts the cookie, and no member stores it. It becomes
// invalid when its token is deleted. Read access to the store is not enough to create one.

// SessionCookie is the name of the cookie that represents a token.
const SessionCookie = "troupe_session"

// sessionTime is how long a session lasts before the browser must send its token again.
const sessionTime = 12 * time.Hour

// OpenSession returns the cookie for a token and the identity of the token. It returns no cookie if
// the token is unknown or no token is needed.
func (s *Server) OpenSession(r *http.Request, token string) (*http.Cookie, Identity, error) {
	if len(s.guard.tokens) == 0 || token == "" {
		return nil, Identity{}, nil
	}
	if s.guard.knowsToken(token) {
		return newSession(r, sha256.Sum256([]byte(token)), ""), starter, nil
	}
	t, err := s.guard.stored.findToken(r.Context(), byHash(token))
	if t == nil || err != nil {
		return nil, Identity{}, err
	}
	return newSession(r, s.guard.tokens[0], t.ID), t.toIdentity(), nil
}

func newSession(r *http.Request, sum [sha256.Size]byte, id string) *http.Cookie {
	until := strconv.FormatInt(time.Now().Add(sessionTime).Unix(), 10)
	return sessionCookie(r, until+"."+id+"."+sessionMAC(sum, id, until), int(sessionTime.Seconds()))
}

// CloseSession returns the cookie that makes a browser delete its session cookie.
func (s *Server) CloseSession(r *http.Request) *http.Cookie { return sessionCookie(r, "", -1) }

// NeedsToken reports whether callers need a token.
func (s *Server) NeedsToken() bool { return len(s.guard.tokens) > 0 }

func sessionCookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{Name: SessionCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true,
		Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
}

func sessionMAC(sum [sha256.Size]byte, id, until string) string {
	mac := hmac.New(sha256.New, sum[:])
	mac.Write([]byte("troupe session of " + id + " until " + until))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// inSession returns the identity of a request with a session cookie; nil if there is no valid one.
// The request must come from a page of this server, because other programs on the same host can
// make a browser send the cookie.
func (g *accessGuard) inSession(r *http.Request) (*Identity, error) {
	cookie, err := r.Cookie(SessionCookie)
	if err != nil || !g.fromOwnPage(r) {
		return nil, nil
	}
	parts := strings.Split(cookie.Value, ".")
	if len(parts) != 3 {
		return nil, nil
	}
	until, id, mac := parts[0], parts[1], parts[2]
	seconds, err := strconv.ParseInt(until, 10, 64)
	if err != nil || time.Now().Unix() >= seconds || !g.isSigned(id, until, mac) {
		return nil, nil
	}
	if id == "" {
		return &starter, nil
	}
	return g.lookUpIdentity(r, byID(id))
}

// isSigned reports whether a cookie was signed with a start token of this server.
func (g *accessGuard) isSigned(id, until, mac string) bool {
	found := false
	for i := range g.tokens {
		found = hmac.Equal([]byte(mac), []byte(sessionMAC(g.tokens[i], id, until))) || found
	}
	return found
}

func (g *accessGuard) fromOwnPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host)
}
