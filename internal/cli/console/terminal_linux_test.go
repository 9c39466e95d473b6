package console

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal of the given width.
func terminal(t *testing.T, width uint16) *os.File {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { ours.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { theirs.Close() })
	require.NoError(t, unix.IoctlSetWinsize(int(theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width}))
	return theirs
}

func TestADisplayKnowsItsTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	file := terminal(t, 97)
	d := NewDisplay(file)
	require.Equal(t, []any{97, true}, []any{d.width, d.color})
	t.Setenv("NO_COLOR", "1")
	require.False(t, NewDisplay(file).color)
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	require.False(t, NewDisplay(file).color)
	pipe, _, err := os.Pipe()
	require.NoError(t, err)
	defer pipe.Close()
	require.Equal(t, outputWriter{Writer: pipe}, NewDisplay(pipe))
}
