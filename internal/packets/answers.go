package packets

import "net/http"

// mostWhole is the size up to which a message is joined with its head. Larger messages need several
// packets anyway.
const mostWhole = 64 << 10

// Answers writes heads together with the following data. Otherwise Go's HTTP/2 fills its buffer of
// 4 KiB, sends that, and sends the rest of a message separately.
func Answers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &bufferedAnswer{ResponseWriter: w}
		defer func() { _ = a.flushHead() }()
		next.ServeHTTP(a, r)
	})
}

// bufferedAnswer holds a write that may be a head until the next write.
type bufferedAnswer struct {
	http.ResponseWriter
	head      []byte
	lastWrite []byte // last written message, kept to reuse its memory
}

// Unwrap supports http.ResponseController.
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

// flushHead writes the held head.
func (a *bufferedAnswer) flushHead() error {
	if len(a.head) == 0 {
		return nil
	}
	_, err := a.ResponseWriter.Write(a.head)
	a.head = a.head[:0]
	return err
}

// Flush sends all written data.
func (a *bufferedAnswer) Flush() {
	if a.flushHead() == nil {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
}
