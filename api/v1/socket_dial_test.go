package v1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

// clientSocket is a client's end of a WebSocket.
type clientSocket struct {
	*testing.T
	conn *websocket.Conn
}

func (s *server) dial(opts *websocket.DialOptions) (*websocket.Conn, *http.Response, error) {
	s.Helper()
	transport := &http.Transport{DialContext: dialSmall}
	s.Cleanup(transport.CloseIdleConnections)
	opts.HTTPClient = &http.Client{Transport: transport}
	ctx, cancel := context.WithTimeout(s.Context(), deadline)
	defer cancel()
	return websocket.Dial(ctx, s.base+"/v1/ws", opts)
}

// smallBuffers makes buffers of connections small, so that unread data soon blocks the server.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(64 << 10) // otherwise it is larger
	}
	return conn, err
}

// dialSmall does the same on the client's side.
func dialSmall(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(16 << 10) // otherwise it is larger
	}
	return conn, err
}

func (s *server) socket() *clientSocket {
	s.Helper()
	conn, _, err := s.dial(&websocket.DialOptions{})
	require.NoError(s, err)
	conn.SetReadLimit(-1)
	s.Cleanup(func() { _ = conn.CloseNow() })
	return &clientSocket{s.T, conn}
}

func (k *clientSocket) send(text string) {
	k.Helper()
	require.NoError(k, k.conn.Write(k.Context(), websocket.MessageText, []byte(text)))
}

func (k *clientSocket) subscribeChannel(channel, after string) {
	k.Helper()
	k.send(fmt.Sprintf(`{"subscribe": {"channel": %q, "after": %q}}`, channel, after))
}

func (k *clientSocket) readMessage() (m wire.StreamMessage, err error) {
	k.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	_, text, err := k.conn.Read(ctx)
	if err == nil {
		require.NoError(k, json.Unmarshal(text, &m), "%s", text)
	}
	return m, err
}

func (k *clientSocket) next() wire.StreamMessage {
	k.Helper()
	m, err := k.readMessage()
	require.NoError(k, err)
	return m
}

// nextOf requires the event of the next message.
func (k *clientSocket) nextOf(channel, event string) wire.StreamMessage {
	k.Helper()
	m := k.next()
	require.Equal(k, []string{channel, event}, []string{m.Channel, m.Event}, "%s", m.Data)
	return m
}

// untilClosed reads until a number of channels have been closed, and returns the messages of each.
func (k *clientSocket) untilClosed(channels int) map[string][]wire.StreamMessage {
	k.Helper()
	said := map[string][]wire.StreamMessage{}
	for channels > 0 {
		m := k.next()
		said[m.Channel] = append(said[m.Channel], m)
		if m.Event == wire.StreamClosed {
			channels--
		}
	}
	return said
}

// untilGone reads the ids of a task's events until the channel closes. If the connection closes, it
// returns an error.
func (k *clientSocket) untilGone() (ids []any, err error) {
	k.Helper()
	for {
		m, err := k.readMessage()
		switch {
		case err != nil:
			return ids, err
		case m.Event == wire.StreamEvent:
			ids = append(ids, m.ID)
		case m.Event == wire.StreamClosed:
			return ids, nil
		}
	}
}

func eventNames(list []wire.StreamMessage) []string {
	names := []string{}
	for _, m := range list {
		names = append(names, m.Event)
	}
	return names
}

// eventIDs returns the ids of a task's events in a channel.
func eventIDs(list []wire.StreamMessage) []any {
	ids := []any{}
	for _, m := range list {
		if m.Event == wire.StreamEvent {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func (s *server) eventIDs(task string) (ids []any) {
	s.Helper()
	for after := ""; ; {
		page := s.get("/v1/tasks/" + task + "/events?limit=500&after=" + after)
		ids = append(ids, values(page, "id")...)
		if after = orEmpty(page["next"]); after == "" {
			return ids
		}
	}
}

func (s *server) run(slug, id string) {
	s.Helper()
	s.call(200, "POST", "/api/flows/"+slug+"/runs", obj{"input": obj{"n": 1}, "run_id": id})
}

func (s *server) completeStep(run, step string) {
	s.Helper()
	s.call(200, "POST", "/api/runs/"+run+"/tasks/complete_direct", obj{"step": step, "task_index": 0, "output": 1})
}
