package worker_test

import (
	"crypto/tls"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/internal/certtest"
	"github.com/troupe-engine/troupe/worker"
)

func TestAWorkerBelievesAPrivateAuthority(t *testing.T) {
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

func TestAWorkerThatCannotSayWhomToBelieveDoesNotRun(t *testing.T) {
	w := worker.New(worker.Config{Trust: client.Trust{CA: "/nowhere.pem"}})
	w.Handle("s", nil)
	require.ErrorContains(t, w.Run(t.Context()), "worker: TLS: open /nowhere.pem")
}
