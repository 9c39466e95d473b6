package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/troupe-engine/troupe/api/wire"
)

// writeJSON answers one JSON value and a newline. A client that is gone needs no answer.
func writeJSON(w http.ResponseWriter, status int, v any) {
	writeAs(w, "application/json", status, v)
}

func writeAs(w http.ResponseWriter, kind string, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // a bug of ours: every value we print is made to be printed
		panic(err)
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

func writeError(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, map[string]string{"error": text})
}

// refuse answers a request that no family of routes has seen, in the dialect of the family it is for.
func refuse(w http.ResponseWriter, r *http.Request, p wire.Problem) {
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		writeError(w, p.Status, p.What+": "+p.Hint)
		return
	}
	p.Title, p.Request = http.StatusText(p.Status), RequestID(r.Context())
	p.Explain()
	writeAs(w, "application/problem+json", p.Status, p)
}

func denied(status int, where, what, hint string) wire.Problem {
	return wire.Problem{Status: status, Kind: "denied", Where: where, What: what, Hint: hint}
}
