package child_test

import (
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/child"
)

func TestProgramsHaveLowerPriority(t *testing.T) {
	ours, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	require.NoError(t, err)
	nicer := strconv.Itoa(min(19, 20-ours+10))
	p, err := child.Start(child.Command{Path: "/bin/sh",
		Argv: []string{"sh", "-c", `until [ "$(nice)" = ` + nicer + ` ]; do :; done; nice`},
		Dir:  t.TempDir(), Env: child.Environment([]string{"PATH"})})
	require.NoError(t, err)
	defer p.Close()
	told, err := io.ReadAll(p.Stdout)
	require.NoError(t, err)
	_, err = p.Wait()
	require.NoError(t, err)
	require.Equal(t, nicer, strings.TrimSpace(string(told)))
}
