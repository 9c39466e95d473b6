//go:build unix

package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/job"
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

func TestAnOutputOfACommandThatIsNoJSONFailsTheJobForGood(t *testing.T) {
	for command, want := range map[string]string{
		"echo NaN":                    `the command printed invalid JSON: "NaN"`,
		"echo done":                   `the command printed invalid JSON: "done"`,
		"echo {a: 1}":                 `the command printed invalid JSON: "{a: 1}"`,
		`echo '{"a":'`:                `the command printed invalid JSON: "{\"a\":"`,
		"echo 1; echo 2":              `the command printed invalid JSON: "1\n2"`,
		"echo 012":                    `the command printed invalid JSON: "012"`,
		"yes | head -c 200":           `the command printed invalid JSON: "` + strings.Repeat(`y\n`, 40) + `"`,
		"echo starting; echo '[1,2]'": `the command printed invalid JSON: "starting\n[1,2]"`,
	} {
		out, err := commandHandler(command, os.Environ(), time.Second)(t.Context(), worker.Job{Log: new(bytes.Buffer)})
		require.EqualError(t, err, want, command)
		require.Nil(t, out, command)
		require.True(t, job.IsFatal(err), command)
	}
	for command, want := range map[string]any{
		"true": nil, "echo": nil, "echo null": json.RawMessage("null"),
		`printf ' {"a": 1e400}\n\n'`: json.RawMessage(`{"a": 1e400}`),
	} {
		out, err := commandHandler(command, os.Environ(), time.Second)(t.Context(), worker.Job{Log: new(bytes.Buffer)})
		require.NoError(t, err, command)
		require.Equal(t, want, out, command)
	}
}

func TestTheOutputOfACommandIsLimited(t *testing.T) {
	for command, want := range map[string]string{
		"printf 1; yes '' | head -c 8388607": "",
		"printf 1; yes '' | head -c 8388608": "the command printed more than 8388608 bytes",
		"head -c 100000000 /dev/zero":        "the command printed more than 8388608 bytes",
	} {
		out, err := commandHandler(command, os.Environ(), time.Second)(t.Context(), worker.Job{Log: new(bytes.Buffer)})
		if want == "" {
			require.NoError(t, err, command)
			require.Equal(t, json.RawMessage("1"), out, command)
			continue
		}
		require.EqualError(t, err, want, command)
		require.True(t, job.IsFatal(err), command)
	}
}
