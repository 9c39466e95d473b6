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

// The OpenAPI description is also stored as openapi.json, for client generators. A test fails if
// the file is outdated.
//go:generate go test -count=1 -run TestTheDocumentIsUpToDate . -args -update
//go:generate go run ../../internal/tools/apigen openapi.json ../ui/src/api.gen.ts

// These are the parts of the documentation page. Style and script are separate files for editing.
// The page is sent as one document, so that it only needs one more request, for the description.
var (
	//go:embed docs.html
	docsHTML []byte
	//go:embed docs.css
	docsCSS []byte
	//go:embed docs.js
	docsJS []byte
)

// addDocs adds the routes of the OpenAPI description.
func addDocs(rt *route.Router) {
	document := sync.OnceValue(rt.DescriptionJSON)
	inYAML := sync.OnceValue(func() []byte {
		b, err := rt.API.OpenAPI().YAML()
		if err != nil {
			panic(err) // a test detects this, because it is the same for every caller
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

// docsPage returns the documentation page, and a policy that allows only its own style and script.
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
