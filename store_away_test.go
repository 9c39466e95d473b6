package troupe

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestAMemberWithBlockedWritesIsNotReadyAndRejectsNewWork(t *testing.T) {
	dsn := pgtest.DSN(t)
	e := open(t, dsn)
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.Publish(t.Context(), "f", waitsFor("a")))
	_, err := e.Start(t.Context(), "f", nil)
	require.NoError(t, err)
	member, err := e.Member(t.Context())
	require.NoError(t, err)
	require.NoError(t, member.Ready())

	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "BEGIN; LOCK TABLE troupe.task_events IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	began := time.Now()
	_, err = e.Start(t.Context(), "f", nil, WithKey("k"))
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorContains(t, err, "the store is not available")
	require.ErrorContains(t, err, "it has not said whether it was done")
	require.Less(t, time.Since(began), 20*time.Second)
	require.ErrorContains(t, member.Ready(), "the store is not available, because")
	began = time.Now()
	_, err = e.Start(t.Context(), "f", nil)
	require.ErrorContains(t, err, "nothing was done")
	require.Less(t, time.Since(began), 5*time.Second, "it is refused at once")

	_, err = conn.Exec(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return member.Ready() == nil }, time.Minute, time.Millisecond)
	_, err = e.Start(t.Context(), "f", nil, WithKey("k"))
	require.NoError(t, err)
}

func TestAStartIsRefusedWithoutReadingAStoreThatIsKnownToBeAway(t *testing.T) {
	dsn := pgtest.DSN(t)
	e := serving(t, Config{Store: dsn, IdleAfter: time.Hour})
	require.NoError(t, e.Publish(t.Context(), "f", waitsFor("a")))
	task, err := e.Start(t.Context(), "f", nil)
	require.NoError(t, err)

	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "BEGIN; LOCK TABLE troupe.task_events, troupe.flows, troupe.flow_versions IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	require.ErrorIs(t, e.Signal(t.Context(), task, "ok", json.RawMessage("true")), ErrBusy)

	const refused = ": nothing was done; try again in a moment"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err = e.Start(ctx, "f", nil)
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorContains(t, err, refused)
	_, err = e.StartTx(ctx, nil, "f", nil)
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorContains(t, err, refused)
	resp, err := http.Post("http://"+e.cfg.Listen+"/workflows/f/runs", "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), refused)
	_, err = conn.Exec(t.Context(), "ROLLBACK")
	require.NoError(t, err)
}
