package v1

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// packedDocument is a constant document, which is sent compressed to clients that accept gzip.
type packedDocument struct {
	kind string // media type
	text func() []byte
	zip  func() []byte
}

func newPacked(kind string, text func() []byte) *packedDocument {
	return &packedDocument{kind: kind, text: text, zip: sync.OnceValue(func() []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(text()) // writes to memory
		_ = w.Close()
		return b.Bytes()
	})}
}

// ServeHTTP writes the document.
func (p *packedDocument) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", p.kind)
	h.Set("Vary", "Accept-Encoding")
	body := p.text
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = p.zip
	}
	_, _ = w.Write(body()) // a client that is gone needs no answer
}

// acceptsGzip reports whether a client accepts answers compressed with gzip.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		weight = strings.TrimRight(strings.ReplaceAll(weight, " ", ""), "0")
		if strings.TrimSpace(name) == "gzip" && weight != "q=" && weight != "q=0." {
			return true
		}
	}
	return false
}
