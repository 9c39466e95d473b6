package postgres_test

import (
	"bytes"
	"errors"
	"log/slog"
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

// pair starts a primary and a standby that follows it.
func pair(t *testing.T) (primary, standby *pgtest.Server) {
	primary, err := pgtest.StartServer(t.Context(), "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, primary.Stop()) })
	admin := connect(t, primary.DSN("postgres"))
	for _, statement := range []string{"CREATE ROLE guest LOGIN", "CREATE DATABASE guests OWNER guest"} {
		_, err = admin.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	standby, err = primary.StartStandby(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, standby.Stop()) })
	return primary, standby
}

// fencedBy repeats a call until it returns ErrFenced.
func fencedBy(t *testing.T, call func() error) {
	t.Helper()
	require.Eventually(t, func() bool { return errors.Is(call(), persistence.ErrFenced) }, time.Minute, 10*time.Millisecond)
}

// lines collects the lines of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestAStandbyWithoutTheLastCommitsEndsTheHistoryOfItsPrimary(t *testing.T) {
	primary, standby := pair(t)
	// no superuser
	both := strings.Replace(pgtest.AnyOf("guests", primary, standby), "postgres@", "guest@", 1)
	s, me := joined(t, both)
	other, err := s.Join(t.Context(), persistence.Joining{Name: "other", TTL: time.Hour})
	require.NoError(t, err)
	before, err := s.Renew(t.Context(), me, time.Hour)
	require.NoError(t, err)
	require.Nil(t, before.Takeover)
	require.NoError(t, standby.AwaitCaughtUp(t.Context(), primary))
	require.NoError(t, standby.Detach(t.Context()))
	answers, err := s.Commit(t.Context(), me, []persistence.Commit{row(2)})
	require.NoError(t, err)
	require.NoError(t, answers[0])
	require.NoError(t, primary.Kill())
	require.NoError(t, standby.Promote(t.Context()))

	fencedBy(t, func() error { // the new primary accepts no write of a member from before
		_, err := s.Commit(t.Context(), me, []persistence.Commit{row(3)})
		return err
	})
	var now persistence.Pulse
	fencedBy(t, func() error {
		now, err = s.Renew(t.Context(), me, time.Hour)
		return err
	})
	require.NotEqual(t, before.History, now.History)
	require.Contains(t, now.Takeover.Cause, "has taken over: it is on timeline 2, and the server before was on timeline 1")
	require.True(t, now.Takeover.Lost)
	require.InDelta(t, before.Now.UnixMilli(), now.Kept, 1)
	_, err = s.Renew(t.Context(), other, time.Hour)
	require.ErrorIs(t, err, persistence.ErrFenced, "all members begin anew")
	records, err := s.Load(t.Context(), []string{"a"})
	require.NoError(t, err)
	require.Len(t, records[0].Rows, 1)

	t.Run("the old primary is not used when it comes back", func(t *testing.T) {
		require.NoError(t, primary.Restart(t.Context()))
		var log lines
		again, err := postgres.Open(t.Context(), both, postgres.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err, "a program that has seen nothing of all this asks all servers")
		defer func() { require.NoError(t, again.Close()) }()
		for _, store := range []persistence.Store{s, again} {
			me, err := store.Join(t.Context(), persistence.Joining{Name: "next", TTL: time.Hour})
			require.NoError(t, err)
			_, err = store.Commit(t.Context(), me,
				[]persistence.Commit{{Task: "a", Seq: int64(rowsAt(t, standby)) + 1, Events: []byte("[]")}})
			require.NoError(t, err)
		}
		require.Equal(t, 2, rowsAt(t, primary), "nothing was written there")
		require.Equal(t, 3, rowsAt(t, standby))

		require.NoError(t, standby.Kill())
		require.Eventually(t, func() bool {
			_, err = again.Task(t.Context(), "a")
			require.ErrorIs(t, err, persistence.ErrUnavailable)
			return strings.Contains(err.Error(), "it is an old primary, on timeline 1, and the store has gone on without it, on timeline 2")
		}, time.Minute, 10*time.Millisecond)
		require.Contains(t, log.String(), "store server rejected")
		require.NoError(t, standby.Restart(t.Context()))
	})
}

// rowsAt returns the number of journal rows on a server.
func rowsAt(t *testing.T, s *pgtest.Server) (n int) {
	conn, err := pgx.Connect(t.Context(), s.DSN("guests"))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM troupe.task_events").Scan(&n))
	return n
}

func TestAPromotedStandbyWithAllConfirmedWritesReportsNoLoss(t *testing.T) {
	primary, standby := pair(t)
	s, me := joined(t, pgtest.AnyOf("guests", primary, standby))
	before, err := s.Renew(t.Context(), me, time.Hour)
	require.NoError(t, err)
	answers, err := s.Commit(t.Context(), me, []persistence.Commit{row(2)})
	require.NoError(t, err)
	require.NoError(t, answers[0])
	require.NoError(t, standby.AwaitCaughtUp(t.Context(), primary))
	require.NoError(t, primary.Kill())
	require.NoError(t, standby.Promote(t.Context()))
	var now persistence.Pulse
	fencedBy(t, func() error {
		now, err = s.Renew(t.Context(), me, time.Hour)
		return err
	})
	require.NotEqual(t, before.History, now.History)
	require.False(t, now.Takeover.Lost)
}

func TestABackupThatIsRestoredUnderAMemberEndsItsHistory(t *testing.T) {
	server, err := pgtest.StartServer(t.Context(), "")
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop()) }()
	s, me := joined(t, server.DSN("postgres"))
	before, err := s.Renew(t.Context(), me, time.Hour)
	require.NoError(t, err)
	backup, err := server.Backup(t.Context())
	require.NoError(t, err)
	answers, err := s.Commit(t.Context(), me, []persistence.Commit{row(2)})
	require.NoError(t, err)
	require.NoError(t, answers[0])
	require.NoError(t, server.Restore(t.Context(), backup))
	fencedBy(t, func() error {
		_, err := s.Commit(t.Context(), me, []persistence.Commit{row(3)})
		return err
	})
	var now persistence.Pulse
	fencedBy(t, func() error {
		now, err = s.Renew(t.Context(), me, time.Hour)
		return err
	})
	require.NotEqual(t, before.History, now.History)
	require.Equal(t, &persistence.Takeover{Cause: "something that was confirmed is not there", Lost: true}, now.Takeover)
}

func TestAServerThatIsRestartedGoesOn(t *testing.T) {
	server, err := pgtest.StartServer(t.Context(), "")
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop()) }()
	s, me := joined(t, server.DSN("postgres"))
	before, err := s.Renew(t.Context(), me, time.Hour)
	require.NoError(t, err)
	answers, err := s.Commit(t.Context(), me, []persistence.Commit{row(2)})
	require.NoError(t, err)
	require.NoError(t, answers[0])
	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	var now persistence.Pulse
	require.Eventually(t, func() bool {
		now, err = s.Renew(t.Context(), me, time.Hour)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, before.History, now.History)
	require.Equal(t, before.Renewals+1, now.Renewals)
}

func TestServersThatTakeNoWritesAreRefused(t *testing.T) {
	primary, standby := pair(t)
	_, err := postgres.Open(t.Context(), standby.DSN("guests"), postgres.Options{Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "is a standby: nothing can be written there before it is promoted")

	stranger, err := pgtest.StartServer(t.Context(), "")
	require.NoError(t, err)
	defer func() { require.NoError(t, stranger.Stop()) }()
	s, err := postgres.Open(t.Context(), pgtest.AnyOf("postgres", primary, stranger), postgres.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, primary.Kill())
	require.Eventually(t, func() bool {
		_, err = s.Task(t.Context(), "a")
		require.ErrorIs(t, err, persistence.ErrUnavailable)
		return strings.Contains(err.Error(), "it has another system identifier")
	}, time.Minute, 10*time.Millisecond)
}
