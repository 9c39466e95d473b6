//go:build linux

package ports

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReservedPortIsUnique(t *testing.T) {
	address, err := FreeAddress()
	require.NoError(t, err)
	_, text, err := net.SplitHostPort(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	require.Error(t, reservePort(port), "before anybody listens")
	for range 2 {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err, "who was given it listens, and does so again")
		require.Error(t, reservePort(port), "while somebody listens")
		require.NoError(t, l.Close())
	}
	require.Error(t, reservePort(port), "when nobody listens any more")
}

// TestAProgramCanListenOnAReservedPort lets another process listen, independent of the reserving
// socket.
func TestAProgramCanListenOnAReservedPort(t *testing.T) {
	if address := os.Getenv("LISTEN_AT"); address != "" {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		return
	}
	address, err := FreeAddress()
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "LISTEN_AT="+address)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
}

func TestPortWithAListenerIsNotFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	require.Error(t, reservePort(l.Addr().(*net.TCPAddr).Port))
}
