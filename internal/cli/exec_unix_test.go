//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestTheLogOfACommandIsReadWhileItRuns(t *testing.T) {
	url := startServe(t)
	path := write(t, "talk.yaml", "start: run\nnodes:\n  run: {exec_type: queue, service: talk}\n")
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
	_, _ = background(t, "worker", "--server", url, "--log-level", "error", "--stop-grace", "0s",
		"--exec", "talk=echo half way >&2; exec sleep 1000")
	id := parse[map[string]any](t, call(t, "task", "start", "talk", "--server", url, "-o", "json").stdout)["id"].(string)
	require.Eventually(t, func() bool {
		return call(t, "task", "history", id, "--logs", "--server", url).stdout == "run#1 unit 0 attempt 1:\n  half way\n"
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, 0, call(t, "task", "cancel", id, "--server", url).code)
}

func TestLogsAreFollowedOnAnyMember(t *testing.T) {
	dsn := pgtest.DSN(t)
	var urls []string
	for _, name := range []string{"ada", "bob"} {
		line, _ := background(t, "serve", "--listen", "127.0.0.1:0", "--store", dsn, "--name", name, "--log-level", "error")
		urls = append(urls, urlIn(t, line))
	}
	path, file := write(t, "talk.yaml",
		"start: run\nnodes:\n  run: {exec_type: queue, service: talk}\n"), filepath.Join(t.TempDir(), "go on")
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", urls[0]).code)
	command := fmt.Sprintf("echo half way >&2; while ! test -e '%s'; do sleep 0.02; done; echo done >&2", file)
	_, _ = background(t, "worker", "--server", urls[0], "--log-level", "error", "--exec", "talk="+command)
	id := parse[map[string]any](t, call(t, "task", "start", "talk", "--server", urls[0], "-o", "json").stdout)["id"].(string)
	var told output
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"task", "logs", id, "--follow", "--server", urls[1]}, strings.NewReader(""), &told, &told)
	}()
	told.waitFor(t, "run#1 unit 0 attempt 1 ! half way\n")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, 0, <-ended)
	require.Equal(t, "run#1 unit 0 attempt 1 ! half way\nrun#1 unit 0 attempt 1 ! done\n", told.String())
}
