package child

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAProcessIsTheNewestUntilAnotherOneBegins(t *testing.T) {
	started := func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd
	}
	var first *exec.Cmd
	require.Eventually(t, func() bool { // others on this host begin some as well
		first = started()
		return newest(first.Process.Pid)
	}, time.Minute, time.Millisecond)
	second := started()
	require.False(t, newest(first.Process.Pid))
	require.NotEqual(t, first.Process.Pid, second.Process.Pid)
}
