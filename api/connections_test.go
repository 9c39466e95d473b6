package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
)

func (s *serving) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a request and reads its whole answer.
func ask(t *testing.T, conn net.Conn, path string) int {
	t.Helper()
	_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path)
	require.NoError(t, err)
	return answer(t, conn)
}

func answer(t *testing.T, conn net.Conn) int {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func TestHalfOpenConnectionsMakeRoomForOthers(t *testing.T) {
	s := serve(t, api.Config{Connections: 4})
	for i := range 20 {
		conn := s.dial(t)
		if i%2 == 0 {
			// half a request does not count
			_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: 127")
			require.NoError(t, err)
		}
	}
	require.Equal(t, 200, ask(t, s.dial(t), "/healthz"))
}

func TestConnectionsThatWaitForTheirNextRequestMakeRoomToo(t *testing.T) {
	s := serve(t, api.Config{Connections: 2})
	for range 5 {
		require.Equal(t, 200, ask(t, s.dial(t), "/healthz"))
	}
}

func TestConnectionsAtWorkAreNotCutForOthers(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	s := serve(t, api.Config{Connections: 2}, func(s *api.Server) {
		s.MountOpen("GET /work", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			begun <- struct{}{}
			<-end
			w.WriteHeader(http.StatusTeapot)
		}))
	})
	working := []net.Conn{s.dial(t), s.dial(t)}
	for _, conn := range working {
		_, err := io.WriteString(conn, "GET /work HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		require.NoError(t, err)
		<-begun
	}
	later := s.dial(t)
	_, err := io.WriteString(later, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	require.NoError(t, err)
	close(end)
	for _, conn := range working {
		require.Equal(t, http.StatusTeapot, answer(t, conn))
	}
	require.Equal(t, 200, answer(t, later), "it waited for its turn")
}

func TestAServerStopsWhileAConnectionWaitsForRoom(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	s := serve(t, api.Config{Connections: 1, Grace: time.Minute}, func(s *api.Server) {
		s.MountOpen("GET /work", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			begun <- struct{}{}
			<-end
		}))
	})
	working := s.dial(t)
	_, err := io.WriteString(working, "GET /work HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	require.NoError(t, err)
	<-begun
	s.dial(t)
	s.leave()
	close(end)
	require.Equal(t, 200, answer(t, working))
	require.NoError(t, <-s.left)
}
