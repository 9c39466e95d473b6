package packets

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pieces records each write, and flushes as "".
type pieces struct {
	http.ResponseWriter
	all []string
}

func (p *pieces) Write(b []byte) (int, error) {
	p.all = append(p.all, string(b))
	return len(b), nil
}

func (p *pieces) Flush() { p.all = append(p.all, "") }

func TestAnswersAreWrittenInOnePiece(t *testing.T) {
	head, data := message("a message")
	large := strings.Repeat("x", mostWhole+1)
	written := func(handle func(w http.ResponseWriter)) []string {
		p := &pieces{ResponseWriter: httptest.NewRecorder()}
		Answers(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { handle(w) })).ServeHTTP(p, nil)
		return p.all
	}
	write := func(w http.ResponseWriter, text string) {
		n, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	flush := func(w http.ResponseWriter) { w.(http.Flusher).Flush() }

	for name, c := range map[string]struct {
		handle func(w http.ResponseWriter)
		pieces []string
	}{
		"with its head": {func(w http.ResponseWriter) {
			write(w, string(head))
			write(w,
				string(data))
			flush(w)
		}, []string{string(head) + string(data), ""}},
		"a head alone, flushed": {func(w http.ResponseWriter) { write(w, string(head)); flush(w) }, []string{string(head), ""}},
		"a head at the end":     {func(w http.ResponseWriter) { write(w, string(head)) }, []string{string(head)}},
		"without a head":        {func(w http.ResponseWriter) { write(w, "plain text") }, []string{"plain text"}},
		"a large one":           {func(w http.ResponseWriter) { write(w, string(head)); write(w, large) }, []string{string(head), large}},
		"one after the other": {func(w http.ResponseWriter) {
			write(w, "12345")
			write(w,
				"a")
			write(w, "54321")
			write(w, "b")
		}, []string{"12345a", "54321b"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.pieces, written(c.handle)) })
	}
}
