package packets

import "net/http"

// mostWhole is up to which size a message is put together with its head: beyond that it needs
// several packets anyway.
const mostWhole = 64 << 10

// Answers writes heads together with what follows. Without it Go's HTTP/2 fills its buffer of 4 KiB
// and sends that, and the rest of a message after it.
func Answers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &bufferedAnswer{ResponseWriter: w}
		defer func() { _ = a.flushHead() }()
		next.ServeHTTP(a, r)
	})
}

// bufferedAnswer holds a write that may be a head until the next one.
type bufferedAnswer struct {
	http.ResponseWriter
	head      []byte
	lastWrite []byte // what was written last; kept for its room
}

// Unwrap is what http.ResponseController asks for.
func (a *bufferedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *bufferedAnswer) Write(p []byte) (int, error) {
	switch {
	case len(a.head) == 0 && len(p) == headBytes:
		a.head = append(a.head, p...)
		return len(p), nil
	case len(a.head) == 0:
		return a.ResponseWriter.Write(p)
	case len(p) > mostWhole:
		if err := a.flushHead(); err != nil {
			return 0, err
		}
		return a.ResponseWriter.Write(p)
	}
	a.lastWrite = append(append(a.lastWrite[:0], a.head...), p...)
	a.head = a.head[:0]
	n, err := a.ResponseWriter.Write(a.lastWrite)
	return max(n-headBytes, 0), err
}

// flushHead writes the head that was held.
func (a *bufferedAnswer) flushHead() error {
	if len(a.head) == 0 {
		return nil
	}
	_, err := a.ResponseWriter.Write(a.head)
	a.head = a.head[:0]
	return err
}

// Flush sends all that was written.
func (a *bufferedAnswer) Flush() {
	if a.flushHead() == nil {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
}
