// Package packets has each message of a stream leave in one packet.
//
// Connect writes the head of a message apart from the rest, Go's HTTP/2 sends what a request's body
// has at each read, and what an answer's buffer holds when it is full: two packets for a message,
// and two wake-ups of the other side. What this package promises: a body's bytes stay the same and
// in their order, and no read waits for more than the message that it began.
package packets

import (
	"encoding/binary"
	"io"
	"net/http"
)

// headBytes is how long the head of a message is: a byte of flags, and the length of what follows.
const headBytes = 5

// Whole is a transport of requests whose bodies are messages of Connect's protocol for streams.
type Whole struct{ Transport *http.Transport }

// CloseIdleConnections is what the client calls.
func (w Whole) CloseIdleConnections() { w.Transport.CloseIdleConnections() }

// RoundTrip sends a request.
func (w Whole) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		whole := *r
		whole.Body = &messageReader{ReadCloser: r.Body}
		r = &whole
	}
	return w.Transport.RoundTrip(r)
}

// messageReader is a body that reads heads together with what follows.
type messageReader struct {
	io.ReadCloser
	remaining int // bytes of the message that is being read
}

func (m *messageReader) Read(p []byte) (int, error) {
	switch {
	case m.remaining > 0:
		return m.readRest(p)
	case len(p) < headBytes: // the transport's buffers hold kilobytes
		return 0, io.ErrShortBuffer
	}
	n, err := io.ReadFull(m.ReadCloser, p[:headBytes])
	if err == io.ErrUnexpectedEOF {
		err = io.EOF // as it stands in the body
	}
	if err != nil {
		return n, err
	}
	m.remaining = int(binary.BigEndian.Uint32(p[1:headBytes]))
	if m.remaining == 0 || len(p) == headBytes {
		return n, nil
	}
	more, err := m.readRest(p[headBytes:])
	return n + more, err
}

func (m *messageReader) readRest(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p[:min(len(p), m.remaining)])
	m.remaining -= n
	return n, err
}
