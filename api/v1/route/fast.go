package route

import (
	"bytes"
	"context"
	"io"
	"net/http"

	experimental "github.com/go-json-experiment/json"
)

// Starts, polls and reports arrive by the thousand per second. The framework decodes each body
// twice, once to compare it with its schema. So a request that is clearly valid is served without
// the framework. All others go to the framework, which reports faults.

// fastBody is the maximum size of a body for a fast route.
const fastBody = 256 << 10

// asDescribed decodes a body as strictly as its schema: only known names, in the exact case.
var asDescribed = experimental.JoinOptions(asEncodingJSON, experimental.RejectUnknownMembers(true),
	experimental.MatchCaseInsensitiveNames(false))

// RegisterFast adds a fast route in front of the framework's route. read decodes an input, and
// reports whether the input satisfies the whole schema.
func RegisterFast[I, O any](rt *Router, pattern, id string, read func(*http.Request, []byte,
	*I) bool, handle func(context.Context, *I) (*O, error), answer func(*O) (status int, body any)) {
	rt.fast.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if !isPlain(r) || rt.CheckRole(r.Context(), id) != nil {
			rt.Mux.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		in := new(I)
		// few fields allow null, so the framework decides
		if err != nil || bytes.Contains(body, []byte("null")) || !read(r, body, in) {
			r.Body = struct {
				io.Reader
				io.Closer
				// a read error is returned again to the framework
			}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
			rt.Mux.ServeHTTP(w, r)
			return
		}
		out, err := handle(r.Context(), in)
		if err == nil {
			err = rt.checkPayloads(out)
		}
		if err != nil {
			rt.ToProblem(r.Context(), err).Send(w)
			return
		}
		status, told := answer(out)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = marshalBody(w, told) // a client that is gone needs no answer
	})
}

// isPlain reports whether a request has a JSON body without a query and accepts JSON.
func isPlain(r *http.Request) bool {
	kind, takes := r.Header.Get("Content-Type"), r.Header.Get("Accept")
	return r.ContentLength > 0 && r.ContentLength <= fastBody && r.URL.RawQuery == "" && (kind == "" || kind == "application/json") &&
		(takes == "" || takes == "*/*" || takes == "application/json")
}

// DecodeDescribed decodes a body as strictly as its schema, and reports whether it succeeded.
func DecodeDescribed(body []byte, to any) bool {
	return experimental.Unmarshal(body, to, asDescribed) == nil
}

// SplitResponse returns the status and the body of an answer that has only a body.
func SplitResponse[T any](o *Response[T]) (int, any) { return http.StatusOK, o.Body }
