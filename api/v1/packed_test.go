package v1

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocumentsAreCompressedForClientsThatAcceptGzip(t *testing.T) {
	text := strings.Repeat("all the same ", 1000)
	p := newPacked("text/plain", func() []byte { return []byte(text) })
	for accepts, want := range map[string]bool{"": false, "gzip": true, "br, gzip;q=0.5": true,
		"deflate, gzip ; q = 1": true, "gzip;q=0": false, "gzip;q=0.000": false, "identity": false,
		"x-gzip": false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", accepts)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		require.Equal(t, want, w.Header().Get("Content-Encoding") == "gzip", accepts)
		require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
		var body io.Reader = w.Body
		if want {
			require.Less(t, w.Body.Len(), len(text)/10)
			unpacked, err := gzip.NewReader(w.Body)
			require.NoError(t, err)
			body = unpacked
		}
		read, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, text, string(read))
	}
}
