package cli

import (
	"database/sql"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// goesOn starts a task that waits, backs up the store while the member runs, and ends the task in
// the restored copy. The original task keeps waiting.
func goesOn(t *testing.T, store string, backup func() (restored string)) {
	t.Helper()
	serve := func(store string) []string {
		line, _ := background(t, "serve", "--listen", "127.0.0.1:0", "--store", store, "--log-level", "error")
		return []string{"--server", urlIn(t, line)}
	}
	with := func(at []string, args ...string) string {
		got := call(t, append(args, at...)...)
		require.Equal(t, 0, got.code, got.stderr)
		return got.stdout
	}
	original := serve(store)
	with(original, "flow", "apply", write(t, "approve.yaml", approve))
	id := strings.TrimSpace(with(original, "task", "start", "approve"))
	restored := serve(backup())
	with(restored, "task", "signal", id, "decision", "true")
	require.Eventually(t, func() bool {
		return strings.Contains(with(restored, "task", "show", id),
			"completed")
	}, time.Minute, 10*time.Millisecond)
	require.NotContains(t, with(original, "task", "show", id), "completed")
}

func TestADumpOfPostgreSQLIsRestoredAndGoesOn(t *testing.T) {
	from, to := pgtest.DSN(t), pgtest.DSN(t)
	goesOn(t, from, func() string {
		dump := filepath.Join(t.TempDir(), "troupe.dump")
		postgres(t, "pg_dump", "--schema=troupe", "--format=custom", "--file="+dump, from)
		postgres(t, "pg_restore", "--exit-on-error", "--no-owner", "--dbname="+to, dump)
		return to
	})
}

func TestACopyOfSQLiteIsMadeWhileItsMemberRuns(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "troupe.db"), filepath.Join(dir, "copy.db")
	goesOn(t, "sqlite:"+from, func() string {
		db, err := sql.Open("sqlite", from)
		require.NoError(t, err)
		defer db.Close()
		_, err = db.ExecContext(t.Context(), "VACUUM INTO ?", to)
		require.NoError(t, err)
		return "sqlite:" + to
	})
}

// postgres runs a program of PostgreSQL's clients.
func postgres(t *testing.T, program string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program) // the pattern is valid
		require.NotEmpty(t, found, "%s is needed: install Debian's package postgresql-client", program)
		path = slices.Max(found)
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	require.NoError(t, err, string(out))
}
