package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed dist
var dist embed.FS

// policy is the content security policy of the pages, which allows only content of this server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the pages below /ui/.
func Handler() http.Handler {
	files := sync.OnceValue(func() map[string]*distFile { return filesOf(dist) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/ui/")
		found := files()[name]
		switch {
		case found != nil:
		case strings.HasPrefix(name, "assets/"):
			http.NotFound(w, r)
			return
		default:
			found = files()["index.html"]
		}
		found.serveFile(w, r)
	})
}

// distFile is a file of dist, prepared for sending.
type distFile struct {
	kind   string
	etag   string
	plain  []byte
	packed []byte // nil if compression does not make it smaller
}

func filesOf(from fs.FS) map[string]*distFile {
	all := map[string]*distFile{}
	err := fs.WalkDir(from, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(from, name)
		all[strings.TrimPrefix(name, "dist/")] = newFile(name, b)
		return err
	})
	if err != nil { // cannot fail, because the files are embedded
		panic(err)
	}
	return all
}

func newFile(name string, b []byte) *distFile {
	sum := sha256.Sum256(b)
	f := &distFile{kind: kinds[path.Ext(name)], etag: `"` + hex.EncodeToString(sum[:16]) + `"`, plain: b}
	if packed := compressGzip(b); len(packed) < len(b) {
		f.packed = packed
	}
	return f
}

// kinds maps file extensions to media types. The tables of operating systems are not used, because
// they differ.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".md": "text/plain; charset=utf-8", ".svg": "image/svg+xml", "": "text/plain; charset=utf-8",
}

func compressGzip(b []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil { // cannot fail, because the target is memory
		panic(err)
	}
	return out.Bytes()
}

func (f *distFile) serveFile(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache") // the browser checks the ETag each time
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.etag)
	body := f.plain
	if f.packed != nil && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		h.Set("ETag", "W/"+f.etag) // weak, because other encodings have the same ETag
		body = f.packed
	}
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body) // a client that is gone needs no page
}

func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
