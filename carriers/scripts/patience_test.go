package scripts_test

import (
	"context"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/scripts"
	"github.com/troupe-engine/troupe/flow"
)

// useUp lowers the limit of file descriptors and uses up all of them until they are given back.
func useUp(t *testing.T) (giveBack func()) {
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	lower := before
	lower.Cur = 64
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lower))
	var taken []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			require.ErrorIs(t, err, syscall.EMFILE)
			break
		}
		taken = append(taken, f)
	}
	giveBack = sync.OnceFunc(func() {
		for _, f := range taken {
			f.Close()
		}
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	})
	t.Cleanup(giveBack)
	return giveBack
}

func TestScriptsWaitForFileDescriptors(t *testing.T) {
	c := scripts.New(scripts.Options{Allow: true})
	require.Empty(t, c.Carry(t.Context(), job(flow.Script{Cmd: "true"})).Error)
	giveBack := useUp(t)
	for name, s := range map[string]flow.Script{"command": {Cmd: "true"}, "code": {Code: "true"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		require.Equal(t, flow.Report{Error: "failed: context deadline exceeded"}, c.Carry(ctx, job(s)), name)
		cancel()
	}
	reports := make(chan flow.Report)
	const jobs = 10
	for range jobs {
		go func() {
			reports <- c.Carry(t.Context(), job(flow.Script{Cmd: "echo", Args: []string{"x"}, StdinMode: "json"}))
		}()
	}
	giveBack()
	for range jobs {
		require.Empty(t, (<-reports).Error)
	}
}
