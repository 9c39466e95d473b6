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

// A browser cannot send a token with a WebSocket, and must not keep one where scripts of a page can
// read it. So it gets a cookie for its token: it says until when, and which token of the store it
// is for, signed with what the guard knows of a token that the server was started with. So every
// member with the same such tokens knows it, none keeps anything, it is worth nothing once the
// token is gone, and who reads the store cannot make one.

// SessionCookie is the name of the cookie that stands for a token.
const SessionCookie = "troupe_session"

// sessionTime is how long a browser need not send its token again.
const sessionTime = 12 * time.Hour

// OpenSession is the cookie that stands for a token, and who has that; no cookie when the token is
// none of this server's. Where no token is needed there is nothing that it could stand for.
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

// CloseSession is the cookie that has a browser forget the one it has.
func (s *Server) CloseSession(r *http.Request) *http.Cookie { return sessionCookie(r, "", -1) }

// NeedsToken reports whether who comes in has to have a token.
func (s *Server) NeedsToken() bool { return len(s.guard.tokens) > 0 }

func sessionCookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{Name: SessionCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
}

func sessionMAC(sum [sha256.Size]byte, id, until string) string {
	mac := hmac.New(sha256.New, sum[:])
	mac.Write([]byte("troupe session of " + id + " until " + until))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// inSession says who a request is of that comes with a cookie, from a page of this very server: a
// cookie comes along with what other programs on the same host have a browser send, too. nil = of
// nobody who is known.
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

// isSigned reports whether a cookie was made by a server with one of these tokens.
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
