package api

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// leastCompressed is the size in bytes below which answers are not compressed, because compression
// would save no packet.
const leastCompressed = 1 << 10

// Compressed compresses JSON answers for clients that accept gzip. Streams, range requests and
// answers to methods other than GET pass unchanged. Workers use POST, and compression would cost
// them more than it saves.
func Compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Upgrade") != "" || r.Header.Get("Range") != "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Add("Vary", "Accept-Encoding")
		if !takesGzip(r.Header.Values("Accept-Encoding")) {
			next.ServeHTTP(w, r)
			return
		}
		c := &compressWriter{ResponseWriter: w}
		defer c.releaseGzip()
		next.ServeHTTP(c, r)
		c.flushRest() // skipped after a panic, because half an answer must not look complete
	})
}

// takesGzip reports whether an Accept-Encoding header accepts gzip.
func takesGzip(headers []string) bool {
	for _, word := range strings.Split(strings.Join(headers, ","), ",") {
		name, weight, _ := strings.Cut(word, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		q, given := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		value, err := strconv.ParseFloat(q, 64)
		return !given || err == nil && value > 0
	}
	return false
}

// compressWriter holds back the beginning of an answer until it is known whether compressing pays.
type compressWriter struct {
	http.ResponseWriter
	status  int
	plain   bool   // the answer is not compressed
	pending []byte // bytes that have not been sent
	gzip    *gzip.Writer
}

var gzips = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // cannot happen with a valid compression level
	}
	return w
}}

// Unwrap returns the inner writer, for http.ResponseController.
func (c *compressWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *compressWriter) WriteHeader(status int) {
	if c.status != 0 {
		return
	}
	c.status = status
	h := c.Header()
	c.plain = h.Get("Content-Encoding") != "" || !strings.Contains(h.Get("Content-Type"), "json") ||
		status < http.StatusOK || status == http.StatusNoContent || status == http.StatusNotModified
	if c.plain {
		c.ResponseWriter.WriteHeader(status)
	}
}

func (c *compressWriter) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	switch {
	case c.plain:
		return c.ResponseWriter.Write(b)
	case c.gzip == nil && len(c.pending)+len(b) < leastCompressed:
		c.pending = append(c.pending, b...)
		return len(b), nil
	case c.gzip == nil:
		if err := c.startGzip(); err != nil {
			return 0, err
		}
	}
	return c.gzip.Write(b)
}

// startGzip compresses the answer from here on.
func (c *compressWriter) startGzip() error {
	h := c.Header()
	h.Set("Content-Encoding", "gzip")
	h.Del("Content-Length")
	h.Del("Accept-Ranges") // ranges refer to the plain answer
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
		h.Set("ETag", "W/"+tag)
	}
	c.ResponseWriter.WriteHeader(c.status)
	c.gzip = gzips.Get().(*gzip.Writer)
	c.gzip.Reset(c.ResponseWriter)
	_, err := c.gzip.Write(c.pending)
	c.pending = nil
	return err
}

// flushRest sends the remaining bytes. It ignores write errors, because a client that is gone needs
// no answer.
func (c *compressWriter) flushRest() {
	switch {
	case c.gzip != nil:
		_ = c.gzip.Close()
	case c.status != 0 && !c.plain:
		c.ResponseWriter.WriteHeader(c.status)
		_, _ = c.ResponseWriter.Write(c.pending)
	}
}

func (c *compressWriter) releaseGzip() {
	if c.gzip != nil {
		c.gzip.Reset(io.Discard)
		gzips.Put(c.gzip)
	}
}

// ETag returns an entity tag for the content of an answer.
func ETag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}
