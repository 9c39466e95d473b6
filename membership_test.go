package troupe

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/certtest"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/ports"
	"github.com/troupe-engine/troupe/persistence"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// freeAddress returns an address that is not in use.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := ports.FreeAddress()
	require.NoError(t, err)
	return address
}

// join opens a member of a program that embeds Troupe, which joins the cluster.
func join(t *testing.T, cfg Config) *Engine {
	t.Helper()
	e, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	_, err = e.Member(t.Context())
	require.NoError(t, err)
	return e
}

// countShards returns the number of shards of each member, and of those without one by "".
func (e *Engine) countShards(t *testing.T) map[string]int {
	t.Helper()
	c, err := e.stores.Newest.Cluster(t.Context())
	require.NoError(t, err)
	owned := map[string]int{}
	for _, owner := range c.Owners {
		owned[owner]++
	}
	return owned
}

// shared waits until each member owns shards, and together they own all.
func shared(t *testing.T, members ...*Engine) {
	t.Helper()
	require.Eventually(t, func() bool {
		owned := members[0].countShards(t)
		return owned[""] == 0 && len(owned) == len(members)
	}, 30*time.Second, 10*time.Millisecond)
}

// sharedEvenly waits until the members own about as many shards each, so that none moves any more.
func sharedEvenly(t *testing.T, members ...*Engine) {
	t.Helper()
	shared(t, members...)
	require.Eventually(t, func() bool {
		counts := slices.Collect(maps.Values(members[0].countShards(t)))
		return slices.Max(counts)-slices.Min(counts) <= slices.Max(counts)/5
	}, time.Minute, 10*time.Millisecond)
}

// signals sends signals to tasks through a member until it has reached tasks of each other member.
func (e *Engine) signals(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range 16 {
		id, err := e.Start(ctx, "f", nil)
		require.NoError(t, err)
		require.NoError(t, e.Signal(ctx, id, "ok", json.RawMessage("true")))
		result, err := e.Wait(ctx, id)
		require.NoError(t, err)
		require.EqualValues(t, "completed", result.Status)
	}
}

func TestMembersAreReachableBeforeServe(t *testing.T) {
	store, ca := pgtest.DSN(t), certtest.New(t)
	own := ca.Issue(t)
	for name, cfg := range map[string]Config{
		"a member that is to listen": {Listen: freeAddress(t)},
		"one that listens nowhere":   {},
		"one that is to speak TLS": {Listen: freeAddress(t), TLSCert: own.Cert, TLSKey: own.Key,
			CA: ca.File},
		"one that is to see certificates too": {Listen: freeAddress(t), TLSCert: own.Cert,
			TLSKey: own.Key, TLSClientCA: ca.File, CA: ca.File},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Store, cfg.Name = store, name
			other := Config{Store: store, Name: "the other one", CA: cfg.CA, TLSCert: cfg.TLSCert, TLSKey: cfg.TLSKey}
			a, b := join(t, cfg), join(t, other)
			require.NoError(t, a.Publish(t.Context(), "f", waitsFor("a")))
			shared(t, a, b)
			a.signals(t)
			b.signals(t)
		})
	}
}

func TestSchemasOfOneDatabaseAreSeparateClusters(t *testing.T) {
	store := pgtest.DSN(t)
	pair := func(schema string) (a, b *Engine) {
		a = join(t, Config{Store: store, Schema: schema, Name: "a"})
		// A member that contacts the other cluster's gossip still joins its own cluster.
		b = join(t, Config{Store: store, Schema: schema, Name: "b", Join: []string{a.membership.GossipAddress()}})
		return a, b
	}
	a, b := pair("")
	c, d := pair("band")
	stray := join(t, Config{Store: store, Schema: "band", Name: "e", Join: []string{a.membership.GossipAddress()}})
	shared(t, a, b)
	shared(t, c, d, stray)
	for name, e := range map[string]*Engine{"one": a, "two": b} {
		members, err := e.stores.Newest.Cluster(t.Context())
		require.NoError(t, err, name)
		require.Len(t, members.Members, 2, name)
	}
	require.NoError(t, a.Publish(t.Context(), "f", waitsFor("a")))
	require.NoError(t, c.Publish(t.Context(), "f", waitsFor("a")))
	for _, e := range []*Engine{a, b, c, d, stray} {
		e.signals(t)
	}
	only, err := a.Start(t.Context(), "f", nil)
	require.NoError(t, err)
	require.Error(t, d.Signal(t.Context(), only, "ok", json.RawMessage("true")), "nobody there knows of it")
	require.NotEqual(t, a.membership.ID().Secret, c.membership.ID().Secret)
}

func TestAMemberAdvertisesTheAddressOfItsAPI(t *testing.T) {
	cfg := Config{Store: pgtest.DSN(t), Listen: freeAddress(t)}
	var err error
	cfg.Listener, err = Listen(cfg)
	require.NoError(t, err)
	a, b := join(t, cfg), join(t, Config{Store: cfg.Store})
	url := func(of *Engine) string {
		c, err := a.stores.Newest.Cluster(t.Context())
		require.NoError(t, err)
		for _, m := range c.Members {
			if m.Incarnation == of.member.Incarnation() {
				return m.URL
			}
		}
		return ""
	}
	require.Equal(t, "http://"+cfg.Listen, url(a))
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx, nil) }()
	require.NoError(t, a.Publish(t.Context(), "f", waitsFor("a")))
	shared(t, a, b)
	b.signals(t)

	resp, err := http.Get(url(a) + "/readyz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	cancel()
	require.NoError(t, <-served)
	c, err := b.stores.Newest.Cluster(t.Context())
	require.NoError(t, err)
	require.NotContains(t, c.Owners, a.member.Incarnation(), "it serves no longer, so it owns nothing any more")
	a.signals(t)
}

func TestAMemberWithAFailedListenerGivesUpItsShards(t *testing.T) {
	cfg := Config{Store: pgtest.DSN(t), Listen: freeAddress(t)}
	var err error
	cfg.Listener, err = Listen(cfg)
	require.NoError(t, err)
	a, b := join(t, cfg), join(t, Config{Store: cfg.Store})
	shared(t, a, b)
	served := make(chan error, 1)
	go func() { served <- a.Serve(t.Context(), nil) }()
	require.NoError(t, cfg.Listener.Close())
	require.ErrorIs(t, <-served, net.ErrClosed)
	c, err := b.stores.Newest.Cluster(t.Context())
	require.NoError(t, err)
	require.NotContains(t, c.Owners, a.member.Incarnation())
}

func TestMembersWithoutASecretUseTheSecretOfTheirStore(t *testing.T) {
	store := pgtest.DSN(t)
	a, b := join(t, Config{Store: store}), join(t, Config{Store: store})
	require.NotEmpty(t, a.membership.ID().Secret)
	require.Equal(t, a.membership.ID().Secret, b.membership.ID().Secret)
	stranger := join(t, Config{Store: pgtest.DSN(t)})
	require.NotEqual(t, a.membership.ID().Secret, stranger.membership.ID().Secret)

	other, err := Open(t.Context(), Config{Store: store, Cluster: "other"})
	require.NoError(t, err)
	_, err = other.Member(t.Context())
	require.ErrorIs(t, err, persistence.ErrStranger)
	require.NoError(t, other.Close())
}

func TestALeavingMemberAnswersUntilItsJobsHaveFinished(t *testing.T) {
	cfg := Config{Store: pgtest.DSN(t), Listen: freeAddress(t)}
	a, b := join(t, cfg), join(t, Config{Store: cfg.Store})
	began, finish := make(chan string, 100), make(chan struct{})
	for _, e := range []*Engine{a, b} {
		e.HandleJSON("stay", func(_ context.Context, j Job) (json.RawMessage, error) {
			began <- j.ID
			<-finish
			return nil, nil
		})
	}
	require.NoError(t, a.Publish(t.Context(), "f", []byte(`{"start":"s","nodes":{"s":{"exec_type":"local_func","func":"stay"}}}`)))
	shared(t, a, b)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx, nil) }()
	var tasks []string
	for i := range 16 {
		// A member that cannot reach the other one at the moment starts its tasks locally, so both
		// must start some.
		id, err := []*Engine{a, b}[i%2].Start(t.Context(), "f", nil)
		require.NoError(t, err)
		tasks = append(tasks, id)
	}
	for range tasks {
		<-began
	}
	cancel()
	shared(t, b)
	select {
	case <-served:
		require.Fail(t, "it does not answer any more, and has jobs under way")
	case <-time.After(300 * time.Millisecond):
	}
	answer, err := http.Get("http://" + cfg.Listen + "/healthz")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	close(finish)
	require.NoError(t, <-served)
	for _, id := range tasks {
		result, err := b.Wait(t.Context(), id)
		require.NoError(t, err)
		require.EqualValues(t, "completed", result.Status)
	}
	require.Empty(t, began, "no job is carried out twice")
}
