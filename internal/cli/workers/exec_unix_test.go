//go:build unix

package workers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/worker"
)

// cancelCommand runs a command until a file exists, and then cancels the job.
func cancelCommand(t *testing.T, command string, grace time.Duration, file string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := commandHandler(command, os.Environ(), grace)(ctx, worker.Job{Log: new(bytes.Buffer)})
		ended <- err
	}()
	awaitFile(t, file)
	cancel()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		require.FailNow(t, "the command does not end")
		return nil
	}
}

func awaitFile(t *testing.T, file string) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, time.Minute, time.Millisecond)
}

func TestACanceledCommandMayCleanUp(t *testing.T) {
	begun, tidied := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "tidied")
	command := fmt.Sprintf("trap 'touch %s; exit 7' TERM; touch %s; while :; do sleep 0.01; done", tidied, begun)
	require.ErrorContains(t, cancelCommand(t, command, time.Hour, begun), "exit code 7")
	require.FileExists(t, tidied)
}

func TestACommandThatDoesNotEndIsKilled(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	command := fmt.Sprintf("trap '' TERM; touch %s; while :; do sleep 0.01; done", begun)
	require.ErrorContains(t, cancelCommand(t, command, 10*time.Millisecond, begun), "signal: killed")
}

func TestAFailedCommandReportsItsExitCode(t *testing.T) {
	for command, want := range map[string]string{
		"echo first >&2; echo no stock >&2; exit 3": "no stock (exit code 3)",
		"exit 4":                    "the command failed without output on stderr: exit code 4",
		"echo ouch >&2; kill -9 $$": "ouch (signal: killed)",
	} {
		_, err := commandHandler(command, os.Environ(), time.Second)(t.Context(), worker.Job{Log: new(bytes.Buffer)})
		require.EqualError(t, err, want)
	}
}
