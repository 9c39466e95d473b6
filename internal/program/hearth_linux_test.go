package program

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// parentTask kills the interpreter that has forked it.
const parentTask = `
import os, time
def main():
    os.kill(os.getppid(), 9)
    time.sleep(1000)
`

// hearthOf returns a runner and a job whose folder has a task, with the command of its warm
// interpreter.
func hearthOf(t *testing.T) (*Runner, *Job) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.py"), []byte(parentTask), 0o600))
	r := New(Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(r.Close)
	return r, &Job{Type: flow.ExecPython, Program: &flow.Program{File: "w.py", Warm: 1}}
}

func TestEndedInterpreterIsNotBusy(t *testing.T) {
	r, job := hearthOf(t)
	cmd, cleanup, err := r.prepareCommand(t.Context(), job)
	defer cleanup()
	require.NoError(t, err)
	warm, want := r.warmCommand(job, cmd)
	z := r.warmPool.takeForker(t.Context(), warm, want)
	require.NotNil(t, z)
	p, err := z.Start(cmd)
	require.NoError(t, err)
	defer p.Close()
	f := r.warmPool.groups[warmGroupKey(warm)]
	_, err = p.Wait()
	require.Error(t, err)
	<-z.Gone()
	require.True(t, f.isIdle())
	_, err = z.Start(cmd)
	require.Error(t, err)
	require.Zero(t, z.Running(), "what it was not asked for is not waited for")
}

func TestLargestWishSetsTheNumberOfWarmInterpreters(t *testing.T) {
	r, job := hearthOf(t)
	cmd, cleanup, err := r.prepareCommand(t.Context(), job)
	defer cleanup()
	require.NoError(t, err)
	warm, _ := r.warmCommand(job, cmd)
	h := &r.warmPool
	for _, tt := range []struct{ want, kept int }{{1, 1}, {3, 3}, {2, 3}, {maxWarm + 1, 3}} {
		require.NotNil(t, h.takeForker(t.Context(), warm, tt.want))
		h.mu.Lock()
		require.Equal(t, tt.kept, h.groups[warmGroupKey(warm)].wanted)
		h.mu.Unlock()
	}
}
