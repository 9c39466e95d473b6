package packets

import "net/http"

// mostWhole is up to which size a message is put together with its head: beyond that it needs several packets anyway.
const mostWhole = 64 << 10

// Answers writes heads together with what follows. Without it Go's HTTP/2 fills its buffer of 4 KiB and sends that, and the rest of
// a message after it.
func Answers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w}
		defer func() { _ = a.letGo() }()
		next.ServeHTTP(a, r)
	})
}

// answer holds a write that may be a head until the next one.
type answer struct {
	http.ResponseWriter
	head  []byte
	whole []byte // what was written last; kept for its room
}

// Unwrap is what http.ResponseController asks for.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) Write(p []byte) (int, error) {
	switch {
	case len(a.head) == 0 && len(p) == headBytes:
		a.head = append(a.head, p...)
		return len(p), nil
	case len(a.head) == 0:
		return a.ResponseWriter.Write(p)
	case len(p) > mostWhole:
		if err := a.letGo(); err != nil {
			return 0, err
		}
		return a.ResponseWriter.Write(p)
	}
	a.whole = append(append(a.whole[:0], a.head...), p...)
	a.head = a.head[:0]
	n, err := a.ResponseWriter.Write(a.whole)
	return max(n-headBytes, 0), err
}

// letGo writes the head that was held.
func (a *answer) letGo() error {
	if len(a.head) == 0 {
		return nil
	}
	_, err := a.ResponseWriter.Write(a.head)
	a.head = a.head[:0]
	return err
}

// Flush sends all that was written.
func (a *answer) Flush() {
	if a.letGo() == nil {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
}
