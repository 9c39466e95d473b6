package stream

import (
	"context"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// held is an answer with a second write, a heartbeat, that ends some time after the stream.
type held struct {
	*httptest.ResponseRecorder
	writes  int
	writing chan struct{}
	over    context.Context
	written atomic.Bool
}

func (h *held) Write(text []byte) (int, error) {
	if h.writes++; h.writes == 2 {
		close(h.writing)
		<-h.over.Done()
		for range 100 {
			runtime.Gosched()
		}
		h.written.Store(true)
	}
	return len(text), nil
}

func TestNothingIsWrittenToAStreamThatIsOver(t *testing.T) {
	for name, end := range map[string]func(){"it ends": func() {}, "it panics": func() { panic("a bug") }} {
		t.Run(name, func(t *testing.T) {
			w := &held{ResponseRecorder: httptest.NewRecorder(), writing: make(chan struct{})}
			func() {
				defer func() { _ = recover() }()
				_, _ = ServeSSE(w, httptest.NewRequest("GET", "/", nil), time.Millisecond, func(ctx context.Context, to Listener) error {
					w.over = ctx
					require.NoError(t, to.Open())
					<-w.writing
					end()
					return nil
				})
			}()
			require.True(t, w.written.Load())
		})
	}
}
