// Package packets sends each message of a stream in a single packet.
//
// Connect writes the head of a message separately from its data. Go's HTTP/2 sends a request body
// at each read, and a response when its buffer is full. That makes two packets per message, and two
// wake-ups of the receiver.
//
// Promises: the bytes of a body and their order stay unchanged, and no read waits for more than the
// message it began.
package packets

import (
	"encoding/binary"
	"io"
	"net/http"
)

// headBytes is the length of a message's head: a byte of flags, and the length of the data.
const headBytes = 5

// Whole is a transport for requests whose bodies are streams of the Connect protocol.
type Whole struct{ Transport *http.Transport }

// CloseIdleConnections is called by http.Client.
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

// messageReader is a body that reads heads together with their data.
type messageReader struct {
	io.ReadCloser
	remaining int // remaining bytes of the current message
}

func (m *messageReader) Read(p []byte) (int, error) {
	switch {
	case m.remaining > 0:
		return m.readRest(p)
	case len(p) < headBytes: // the buffers of the transport hold kilobytes
		return 0, io.ErrShortBuffer
	}
	n, err := io.ReadFull(m.ReadCloser, p[:headBytes])
	if err == io.ErrUnexpectedEOF {
		err = io.EOF // as at the end of the body itself
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
