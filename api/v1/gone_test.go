package v1

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gone is a client that hung up before it was answered.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAClientThatHasHungUpIsNoPanic(t *testing.T) {
	s := newService(Config{})
	for _, body := range []string{`{"start":"a","nodes":{"a":{"kind":"choice"}}}`, `{`} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/validate", strings.NewReader(body))
		require.NotPanics(t, func() { s.ServeHTTP(gone{httptest.NewRecorder()}, r) })
	}
}
