package postgres_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

// small starts a server with five connections, of which users other than its owner may have two.
func small(t *testing.T) *pgtest.Server {
	server, err := pgtest.StartServer(t.Context(), "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	for _, statement := range []string{"CREATE ROLE guest LOGIN",
		"CREATE DATABASE guests OWNER guest", "CREATE ROLE lonely LOGIN CONNECTION LIMIT 1",
		"CREATE DATABASE empty"} {
		_, err = conn.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, conn.Close(t.Context()))
	server.LimitConnections(5)
	require.NoError(t, server.Restart(t.Context()))
	return server
}

// crowd uses a store from many goroutines at once, and requires that all requests succeed.
func crowd(t *testing.T, s persistence.Store) {
	defer func() { require.NoError(t, s.Close()) }()
	me, err := s.Join(t.Context(), persistence.Joining{Name: "me", TTL: time.Minute})
	require.NoError(t, err)
	flow := rand.Text()
	require.NoError(t, s.CreateFlow(t.Context(), persistence.Flow{ID: flow}))
	require.NoError(t, s.CreateVersion(t.Context(), persistence.Version{ID: flow, FlowID: flow, Definition: []byte("{}")}))
	const users = 80
	errs := make(chan error, 3*users)
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() {
			answers, err := s.Commit(t.Context(), me,
				[]persistence.Commit{{Task: fmt.Sprint(flow, i),
					Create: &persistence.Create{VersionID: flow}, Seq: 1, Events: []byte("[]")}})
			if err == nil {
				err = answers[0]
			}
			errs <- err
		})
		all.Go(func() {
			_, err := s.Load(t.Context(), []string{fmt.Sprint(flow, i)})
			errs <- err
		})
		all.Go(func() {
			_, err := s.Renew(t.Context(), me, time.Minute)
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, s.Leave(t.Context(), me))
}

func TestRequestsWaitForAConnectionWhereThereAreFew(t *testing.T) {
	server := small(t)
	guest := strings.Replace(server.DSN("guests"), "postgres@", "guest@", 1)
	t.Run("all five", func(t *testing.T) {
		crowd(t, openAt(t, server.DSN("empty")))
	})
	t.Run("two", func(t *testing.T) {
		s := openAt(t, guest)
		require.Equal(t, 1, s.Lanes())
		crowd(t, s)
	})
	t.Run("fewer than the server says", func(t *testing.T) {
		for range 2 {
			connect(t, server.DSN("postgres"))
		}
		crowd(t, openAt(t, server.DSN("empty")))
	})
	t.Run("too few", func(t *testing.T) {
		_, err := postgres.Open(t.Context(), strings.Replace(guest, "guest@", "lonely@", 1), postgres.Options{})
		require.ErrorContains(t, err, "the server gives 1 connections to this user, and a member needs 2: raise max_connections")
	})
}

func TestAMemberWaitsForAConnectionAtItsStart(t *testing.T) {
	server := small(t)
	var others []*pgx.Conn
	for range 5 {
		// the server may still be ending the connections that created its databases
		require.Eventually(t, func() bool {
			conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
			if err == nil {
				others = append(others, conn)
			}
			return err == nil
		}, 20*time.Second, 10*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	_, err := postgres.Open(ctx, server.DSN("empty"), postgres.Options{})
	cancel()
	// "too many clients", or the timeout expired during the last try
	require.Error(t, err, "there is no place for it")
	opened := make(chan persistence.Store)
	go func() {
		s, err := postgres.Open(t.Context(), server.DSN("empty"), postgres.Options{})
		require.NoError(t, err)
		opened <- s
	}()
	for _, conn := range others {
		require.NoError(t, conn.Close(t.Context()))
	}
	crowd(t, <-opened)
}
