package v1

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"sync"

	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/definition"
)

// The description is also stored as openapi.json, for generators of clients. A test fails if it is
// out of date.
//go:generate go test -count=1 -run TestTheDocumentIsUpToDate . -args -update
//go:generate go run ../../internal/tools/apigen openapi.json ../ui/src/api.gen.ts

// The page that shows the description. Style and script are separate files, which are easier to
// edit. The page is sent as one, so that it needs no other request than that for the document.
var (
	//go:embed docs.html
	docsHTML []byte
	//go:embed docs.css
	docsCSS []byte
	//go:embed docs.js
	docsJS []byte
)

// addDocs adds the routes of the description.
func addDocs(rt *route.Router) {
	document := sync.OnceValue(rt.DescriptionJSON)
	inYAML := sync.OnceValue(func() []byte {
		b, err := rt.API.OpenAPI().YAML()
		if err != nil {
			panic(err) // the same for every caller, so a test finds it
		}
		return b
	})
	rt.Mux.Handle("GET /v1/openapi.json", newPacked("application/openapi+json", document))
	rt.Mux.Handle("GET /v1/openapi.yaml", newPacked("application/openapi+yaml", inYAML))
	rt.Mux.Handle("GET /v1/schema/flow.json", newPacked("application/schema+json", func() []byte { return definition.Schema }))
	page, policy := docsPage()
	docs := newPacked("text/html; charset=utf-8", func() []byte { return page })
	rt.Mux.HandleFunc("GET /v1/docs", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		docs.ServeHTTP(w, r)
	})
}

// docsPage returns the page, and a policy that allows only its own style and script.
func docsPage() (page []byte, policy string) {
	page = append(page, docsHTML...)
	page = append(append(append(page, "<style>"...), docsCSS...), "</style>\n"...)
	page = append(append(append(page, "<script>"...), docsJS...), "</script>\n"...)
	policy = "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"style-src '" + sourceHash(docsCSS) + "'; script-src '" + sourceHash(docsJS) + "'"
	return page, policy
}

func sourceHash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
