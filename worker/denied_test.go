package worker_test

import (
	"cmp"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/worker"
)

func TestADeniedWorkerEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		route, token string // the route that denies it, and its token
		push         bool
		want         string
		status       int // 0 = 401
	}{
		"at the registration":           {"register", "wrong", false, "the token is wrong", 0},
		"a push worker":                 {"register", "wrong", true, "the token is wrong", 0},
		"without a token":               {"register", "", false, "it wants a token, and there is none", 0},
		"at a poll":                     {"poll", "wrong", false, "the token is wrong", 0},
		"at a sign of life, much later": {"heartbeat", "outdated", true, "the token is wrong", 0},
		"with a token of another role":  {"register", "of a viewer", false, "403 Forbidden", 403},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.first(tt.route, status(cmp.Or(tt.status, 401)))
			cfg := config(e)
			cfg.Token, cfg.Push, cfg.Pull, cfg.URL = tt.token, tt.push, !tt.push, "http://127.0.0.1:0"
			w := worker.New(cfg)
			w.Handle("s", nil)
			ended := make(chan error, 1)
			go func() { ended <- w.Run(context.WithoutCancel(t.Context())) }()
			err := soon(t, ended)
			require.ErrorIs(t, err, worker.ErrDenied)
			require.ErrorContains(t, err, tt.want)
			require.Empty(t, e.left, "nobody would hear its goodbye")
		})
	}
}

func TestTheEnvironmentTellsServerAndToken(t *testing.T) {
	e := newEngine(t)
	e.first("register", status(401))
	t.Setenv("REGISTRY_URL", "http://127.0.0.1:1")
	t.Setenv("TROUPE_SERVER", e.URL)
	t.Setenv("TROUPE_TOKEN", "of the environment\n") // as it is read from a file
	w := worker.New(worker.Config{Logger: config(e).Logger})
	w.Handle("s", nil)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	require.ErrorContains(t, soon(t, ended), "the token is wrong")
}
