package workers_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAWorkersSecretIsSentWithEveryCallOfItAlone(t *testing.T) {
	store := newStore(t)
	var logged bytes.Buffer
	options := workers.Options{Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	r := open(t, store, options)
	seen := make(chan []string, 100)
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header["Authorization"]
		_, _ = io.WriteString(w, `{"result":1}`)
	})
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	register := func(id, secret string) error {
		return r.Register(t.Context(), persistence.Worker{ID: id, URL: server.URL, Services: []string{id}, Secret: secret})
	}
	require.NoError(t, register("shy", "s3cret"))
	require.NoError(t, register("old", ""))
	call := func(r *workers.Registry, service string) []string {
		require.Empty(t, r.Carry(t.Context(), job(service)).Error)
		return <-seen
	}
	require.Equal(t, []string{"Bearer s3cret"}, call(r, "shy"))
	require.Empty(t, call(r, "old"), "who registers without a secret is called as ever")
	require.NoError(t, register("shy", "another"))
	require.Equal(t, []string{"Bearer another"}, call(r, "shy"))

	next := open(t, store, options)
	require.Equal(t, []string{"Bearer another"}, call(next, "shy"), "whoever takes over the store knows it too")

	shown := fmt.Sprint(list(t, r), list(t, next), logged.String())
	require.NotContains(t, shown, "s3cret")
	require.NotContains(t, shown, "another")
}

func TestAnUnauthorizedResponseIsNoAnswer(t *testing.T) {
	r := open(t, newStore(t), workers.Options{})
	serve(t, r, says(http.StatusUnauthorized, "only the engine has its secret\n"), says(200, `{"result":2}`))
	require.Equal(t, "2", string(r.Carry(t.Context(), job("s")).Output))
}

func TestAWorkerSecretMustBeVisibleASCII(t *testing.T) {
	r := open(t, newStore(t), workers.Options{})
	for _, secret := range []string{"two words", "line\nbreak", "grün", strings.Repeat("x", 257)} {
		err := r.Register(t.Context(), persistence.Worker{ID: "w", URL: "http://127.0.0.1:9", Secret: secret})
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
		require.NotContains(t, err.Error(), secret)
	}
}
