package worker_test

import (
	"context"
	"crypto/tls"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/internal/testing/certtest"
	"github.com/troupe-engine/troupe/worker"
)

func TestAWorkerTrustsAPrivateAuthority(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	require.NoError(t, err)
	e := newEngine(t)
	front := httptest.NewUnstartedServer(e.Config.Handler)
	front.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	front.StartTLS()
	t.Cleanup(front.Close)

	cfg := config(e)
	cfg.Server, cfg.Trust = front.URL, client.Trust{CA: ca.File}
	w := worker.New(cfg)
	w.Handle("s", nil)
	run(t, w)
	<-e.registered
	<-e.polls
}

func TestAWorkerWithUnreadableCertificatesDoesNotRun(t *testing.T) {
	w := worker.New(worker.Config{Trust: client.Trust{CA: "/nowhere.pem"}})
	w.Handle("s", nil)
	require.ErrorContains(t, w.Run(t.Context()), "worker: TLS: open /nowhere.pem")
}

// Over https requests share a connection. A connection that a device in between has dropped stays
// open, but no data arrives.
func TestAWorkerLeavesASharedConnectionThatIsSilent(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	require.NoError(t, err)
	e := newEngine(t)
	front := httptest.NewUnstartedServer(e.Config.Handler)
	front.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	between, address := relayTo(t, front.URL)

	cfg := config(e)
	cfg.Server, cfg.Trust, cfg.Concurrency = address, client.Trust{CA: ca.File}, 1
	w := worker.New(cfg)
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return nil, nil })
	run(t, w)
	soon(t, e.beats)
	soon(t, e.polls)
	between.forget()
	e.queue <- job("1", "s") // the poll on the dropped connection may still receive one
	e.queue <- job("2", "s")
	require.Equal(t, "2", soon(t, e.completed).Job)
}
