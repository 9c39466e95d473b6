package api_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
)

// frame is one of HTTP/2.
func frame(kind, flags, id byte, payload string) string {
	return string([]byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, id}) + payload
}

// Its host was cut off or is frozen, so only the silence shows it.
func TestAStreamWhoseClientIsSilentEnds(t *testing.T) {
	begun, over := make(chan struct{}), make(chan struct{})
	s := serve(t, api.Config{Silence: 200 * time.Millisecond}, func(s *api.Server) {
		s.Mount("/stay", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, leave := stream.Stay(w, r)
			defer leave()
			close(begun)
			<-ctx.Done()
			close(over)
		}))
	})
	host := strings.TrimPrefix(s.url, "http://")
	conn, err := net.Dial("tcp", host)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	get := "\x82\x86\x04\x05/stay\x01" + string(byte(len(host))) + host
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(4, 0, 0, "")+frame(1, 5, 1, get))
	require.NoError(t, err)
	<-begun
	select {
	case <-over:
	case <-time.After(30 * time.Second):
		t.Fatal("the stream waits for its client for ever")
	}
}
