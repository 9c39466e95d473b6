package scripts_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/scripts"
	"github.com/troupe-engine/troupe/flow"
)

func TestRunningScriptsBlockNoThread(t *testing.T) {
	const jobs = 100
	begun := filepath.Join(t.TempDir(), "begun")
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	c := scripts.New(scripts.Options{Allow: true})
	j := job(flow.Script{Code: `printf . >> $BEGUN; sleep 1000`, TimeoutMS: 1_000_000, Env: map[string]string{"BEGUN": begun}})
	for range jobs {
		ended.Go(func() { c.Carry(ctx, j) })
	}
	require.Eventually(t, func() bool {
		dots, _ := os.ReadFile(begun)
		return len(dots) == jobs
	}, patience, 10*time.Millisecond)
	threads, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	require.Less(t, len(threads), jobs/2)
}
