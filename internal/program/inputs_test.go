//go:build !windows

package program_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

var largeInput = json.RawMessage(`"` + strings.Repeat("x", 300_000) + `"`)

func init() {
	parents["TROUPE_TEST_LARGE_INPUT"] = func(string) {
		program.New(program.Options{}).Run(context.Background(),
			program.Job{Input: largeInput, Program: &flow.Program{Command: "cat > /dev/null; sleep 60"}})
	}
}

func inputFiles(t *testing.T) []string {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "troupe-inputs-*", "*"))
	require.NoError(t, err)
	return found
}

func TestInputsOfAKilledProcessAreRemovedByTheNextOne(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "TROUPE_TEST_LARGE_INPUT=1")
	require.NoError(t, parent.Start())
	require.Eventually(t, func() bool { return len(inputFiles(t)) == 1 }, 20*time.Second, time.Millisecond)
	program.New(program.Options{}).Close()
	require.Len(t, inputFiles(t), 1, "it is in use")
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Len(t, inputFiles(t), 1)
	require.Eventually(t, func() bool { // a concurrently starting program may hold the lock briefly
		program.New(program.Options{}).Close()
		left, err := os.ReadDir(os.TempDir())
		return err == nil && len(left) == 0
	}, 20*time.Second, time.Millisecond)
}

func TestConcurrentInputsAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := program.New(program.Options{Dir: t.TempDir()})
	defer r.Close()
	ended := make(chan program.Result)
	for range 8 {
		go func() {
			ended <- r.Run(context.Background(),
				program.Job{Input: largeInput,
					Program: &flow.Program{Command: `cat > /dev/null; wc -c < "$ORK_INPUT_FILE"`}})
		}()
	}
	for range 8 {
		res := <-ended
		require.Empty(t, res.Error)
		require.JSONEq(t, "300002", string(res.Output))
	}
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}
