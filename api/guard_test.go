package api

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/model"
)

func TestStrangersAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		host, origin string
		hosts        []string
		origins      []string
		refused      bool
	}{
		"localhost is known":               {host: "localhost:8070"},
		"loopback is known":                {host: "127.0.0.1:8070"},
		"IPv6 loopback is known":           {host: "[::1]:8070"},
		"the listening address is known":   {host: "10.1.2.3:8070"},
		"another address is not":           {host: "10.1.2.4:8070", refused: true},
		"a name that points here is not":   {host: "evil.example", refused: true},
		"a look-alike is not":              {host: "localhost.evil.example", refused: true},
		"a configured name is known":       {host: "Troupe.example:8070", hosts: []string{"troupe.example"}},
		"every name may be configured":     {host: "evil.example", hosts: []string{"*"}},
		"a page of this server may call":   {host: "10.1.2.3:8070", origin: "http://10.1.2.3:8070"},
		"a page of this computer may call": {host: "localhost:8070", origin: "http://localhost:5173"},
		"a foreign page may not": {host: "localhost:8070", origin: "https://evil.example",
			refused: true},
		"a page from a file may not": {host: "localhost:8070", origin: "null", refused: true},
		"a look-alike page may not": {host: "localhost:8070",
			origin: "http://localhost.evil.example", refused: true},
		"a configured page may call": {host: "localhost:8070",
			origin: "https://ui.example", origins: []string{"https://UI.example"}},
		"every page may be configured to": {host: "localhost:8070", origin: "https://evil.example",
			origins: []string{"*"}},
		"a scheme apart is not the same page": {host: "localhost:8070", origin: "http://ui.example",
			origins: []string{"https://ui.example"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Host = tt.host
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			local := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 8070}
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
			why := newGuard(Config{AllowOrigins: tt.origins, AllowHosts: tt.hosts}).checkAccess(r)
			require.Equal(t, tt.refused, why != nil, why)
		})
	}
}

// Browsers send no Origin with GETs of images, scripts and frames, but they send the kind of site
// that asks.
func TestGETsOfForeignPagesAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		host, site, mode, dest, origin, method string
		origins                                []string
		refused                                bool
	}{
		"no browser":                     {},
		"an address that somebody typed": {site: "none", mode: "navigate", dest: "document"},
		"a page of this server":          {site: "same-origin", mode: "no-cors", dest: "image"},
		"a page of this computer":        {site: "same-site", mode: "no-cors", dest: "script"},
		"a page of a neighboring name": {host: "troupe.example", site: "same-site",
			mode: "no-cors", dest: "script", refused: true},
		"an image of a foreign page": {site: "cross-site", mode: "no-cors", dest: "image", refused: true},
		"a frame of a foreign page":  {site: "cross-site", mode: "navigate", dest: "iframe", refused: true},
		"a form of a foreign page": {site: "cross-site", mode: "navigate",
			dest: "document", method: "POST", refused: true},
		"a link on a foreign page":             {site: "cross-site", mode: "navigate", dest: "document"},
		"a word that browsers do not know yet": {site: "elsewhere", refused: true},
		"a foreign page that is configured": {site: "cross-site", mode: "cors",
			origin: "https://ui.example", origins: []string{"https://ui.example"}},
		"an image of a page when all pages may call":   {site: "cross-site", mode: "no-cors", dest: "image", origins: []string{"*"}},
		"a foreign page that is not configured":        {site: "cross-site", mode: "cors", origin: "https://evil.example", refused: true},
		"a page of this computer that says its origin": {site: "cross-site", mode: "cors", origin: "http://localhost:5173"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(cmp.Or(tt.method, "GET"), "/", nil)
			r.Host = cmp.Or(tt.host, "localhost:8070")
			for header, value := range map[string]string{"Sec-Fetch-Site": tt.site,
				"Sec-Fetch-Mode": tt.mode, "Sec-Fetch-Dest": tt.dest, "Origin": tt.origin} {
				if value != "" {
					r.Header.Set(header, value)
				}
			}
			why := newGuard(Config{AllowOrigins: tt.origins, AllowHosts: []string{"troupe.example"}}).checkAccess(r)
			require.Equal(t, tt.refused, why != nil, why)
		})
	}
}

func TestTokensAreCompared(t *testing.T) {
	g := newGuard(Config{Tokens: []string{"first", "second"}, Member: Member{Store: model.New(model.Options{})}})
	const none, wrong = "a bearer token is needed", "the bearer token is wrong: this server does not know it, or it has expired"
	for header, want := range map[string]string{
		"Bearer first": "", "bearer second": "", "Bearer third": wrong, "Bearer firs": wrong, "Bearer ": none,
		"": none, "Basic first": none, "first": none,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", header)
		who, why := g.identifyCaller(r)
		if want == "" {
			require.Nil(t, why, header)
			require.Equal(t, Admin, who.Role, header)
			continue
		}
		require.NotNil(t, why, header)
		require.Equal(t, []any{want, 401}, []any{why.Message, why.Status}, header)
	}
	for key, want := range map[string]string{"second": "", "third": wrong, "": none} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-API-Key", key)
		if _, why := g.identifyCaller(r); want != "" {
			require.Equal(t, want, why.Message, key)
		} else {
			require.Nil(t, why, key)
		}
		r.Header.Set("Authorization", "Bearer third")
		_, why := g.identifyCaller(r)
		require.Equal(t, wrong, why.Message, "what is said in the usual way counts")
	}
	who, why := newGuard(Config{}).identifyCaller(httptest.NewRequest("GET", "/", nil))
	require.Nil(t, why)
	require.Equal(t, Identity{Role: Admin}, who)
}

func TestTheAnswerToAForeignHostNamesTheFlag(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "evil.example"
	why := newGuard(Config{}).checkAccess(r)
	require.NotNil(t, why)
	require.Equal(t, http.StatusForbidden, why.Status)
	require.Contains(t, why.Message, "evil.example")
	require.Contains(t, why.Hint, "start the server with --allow-host")
}
