package v1_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
)

func TestABrowserSignsIn(t *testing.T) {
	s := start(t, func(set *settings) { set.Tokens = []string{"other", "secret"} })
	s.refused(401, "body.token", "POST", "/v1/session", obj{"token": "wrong"})
	require.Equal(t, 401, s.send("GET", "/v1/me", nil).status)
	opened := s.send("POST", "/v1/session", obj{"token": "secret"})
	require.Equal(t, 200, opened.status, "%s", opened.body)
	set := opened.header.Get("Set-Cookie")
	require.Contains(t, set, "HttpOnly; SameSite=Strict")
	require.NotContains(t, set, "secret")
	cookie, _, _ := strings.Cut(set, ";")
	require.JSONEq(t, `{"name":"flag","role":"admin","needs_token":true}`, string(s.send("GET", "/v1/me", nil, "Cookie", cookie).body))

	own := http.Header{"Cookie": {cookie}, "Origin": {s.base}}
	conn, _, err := websocket.Dial(t.Context(), s.base+"/v1/ws", &websocket.DialOptions{HTTPHeader: own})
	require.NoError(t, err)
	require.NoError(t, conn.CloseNow())
	for name, headers := range map[string][]string{
		"of another program of this computer": {"Origin", "http://localhost:1"},
		"of another site":                     {"Origin", "https://example.com"},
		"fetched for another page":            {"Sec-Fetch-Site", "same-site"},
	} {
		require.Contains(t, []int{401, 403}, s.send("GET", "/v1/me", nil, append(headers, "Cookie", cookie)...).status, name)
	}
	name, value, _ := strings.Cut(cookie, "=")
	until, mac, _ := strings.Cut(value, ".")
	for _, forged := range []string{"9" + until + "." + mac, until + ".", until, "0." + mac,
		until + ".other" + mac, until + ".." + mac, ""} {
		require.Equal(t, 401, s.send("GET", "/v1/me", nil, "Cookie", name+"="+forged).status, forged)
	}
	require.Equal(t, 401, s.send("GET", "/v1/me", nil, "Cookie", cookie, "Authorization",
		"Bearer wrong").status, "a token that is sent counts")
	require.Contains(t, s.send("DELETE", "/v1/session", nil, "Cookie",
		cookie).header.Get("Set-Cookie"), api.SessionCookie+"=; Path=/; Max-Age=0")
}

func TestThereAreNoSessionsIfNoTokenIsNeeded(t *testing.T) {
	s := start(t)
	require.Equal(t, false, s.get("/v1/me")["needs_token"])
	require.Empty(t, s.send("POST", "/v1/session", obj{"token": "any"}).header.Get("Set-Cookie"))
}
