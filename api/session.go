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

// A browser cannot send a token with a WebSocket, and must not keep one where scripts of a page can read it. So it gets a cookie for its token:
// it says until when, signed with what the guard knows of the token. So every member with the same tokens knows it, none keeps anything,
// and it is worth nothing once the token is gone.

// SessionCookie is the name of the cookie that stands for a token.
const SessionCookie = "troupe_session"

// sessionTime is how long a browser need not send its token again.
const sessionTime = 12 * time.Hour

// OpenSession is the cookie that stands for a token, nil when the token is none of this server's. Where no token is needed there is
// nothing that it could stand for.
func (s *Server) OpenSession(r *http.Request, token string) *http.Cookie {
	sum := sha256.Sum256([]byte(token))
	if !s.guard.knowsToken(token) {
		return nil
	}
	until := strconv.FormatInt(time.Now().Add(sessionTime).Unix(), 10)
	return sessionCookie(r, until+"."+sessionMAC(sum, until), int(sessionTime.Seconds()))
}

// CloseSession is the cookie that has a browser forget the one it has.
func (s *Server) CloseSession(r *http.Request) *http.Cookie { return sessionCookie(r, "", -1) }

// NeedsToken says whether who comes in has to have a token.
func (s *Server) NeedsToken() bool { return len(s.guard.tokens) > 0 }

func sessionCookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{Name: SessionCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
}

func sessionMAC(sum [sha256.Size]byte, until string) string {
	mac := hmac.New(sha256.New, sum[:])
	mac.Write([]byte("troupe session until " + until))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// inSession says whether a request comes with a cookie that stands for a token, from a page of this very server: a cookie comes along with what other
// programs on the same host have a browser send, too.
func (g *guard) inSession(r *http.Request) bool {
	cookie, err := r.Cookie(SessionCookie)
	if err != nil || !g.fromOwnPage(r) {
		return false
	}
	until, mac, _ := strings.Cut(cookie.Value, ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	if err != nil || time.Now().Unix() >= seconds {
		return false
	}
	found := false
	for i := range g.tokens {
		found = hmac.Equal([]byte(mac), []byte(sessionMAC(g.tokens[i], until))) || found
	}
	return found
}

func (g *guard) fromOwnPage(r *http.Request) bool {
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
