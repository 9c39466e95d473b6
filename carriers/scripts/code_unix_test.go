//go:build !windows

package scripts_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/scripts"
	"github.com/troupe-engine/troupe/flow"
)

func init() {
	parents["TROUPE_TEST_CODE"] = func() {
		scripts.New(scripts.Options{Allow: true}).Carry(context.Background(), job(flow.Script{Code: "sleep 60"}))
	}
}

func TestCodeFilesOfAKilledProcessAreRemovedByTheNextOne(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	code := func() int {
		found, err := filepath.Glob(filepath.Join(os.TempDir(), "*", "*.sh"))
		require.NoError(t, err)
		return len(found)
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "TROUPE_TEST_CODE=1")
	require.NoError(t, parent.Start())
	require.Eventually(t, func() bool { return code() == 1 }, patience, time.Millisecond)
	scripts.New(scripts.Options{Allow: true})
	require.Equal(t, 1, code(), "it is in use")
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Equal(t, 1, code())
	// a script that is being started may hold the lock for a moment
	require.Eventually(t, func() bool {
		scripts.New(scripts.Options{Allow: true})
		left, err := os.ReadDir(os.TempDir())
		return err == nil && len(left) == 0
	}, patience, time.Millisecond)
}
