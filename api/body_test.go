package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func bodyOf(t *testing.T, text string) *Body {
	t.Helper()
	b, err := ReadBody(httptest.NewRequest("POST", "/", strings.NewReader(text)))
	require.NoError(t, err)
	return b
}

func TestNamesOfFields(t *testing.T) {
	for _, name := range []string{"FlowID", "flowid", "flowId", "flow_id", "FLOW_ID"} {
		require.Equal(t, "f", bodyOf(t, `{"`+name+`":"f"}`).Text("FlowID"), name)
	}
	require.Empty(t, bodyOf(t, `{"flow":"f"}`).Text("FlowID"))
}

func TestWrongFieldsAreSkipped(t *testing.T) {
	b := bodyOf(t, `{"FlowID":"f","Version":"two","Status":7,"services":["a",1],"extra":{}}`)
	require.Equal(t, "f", b.Text("FlowID"))
	require.False(t, b.Bad)
	require.Zero(t, b.Number("Version"))
	require.Empty(t, b.Text("Status"))
	require.True(t, b.Bad)
	for name, text := range map[string]string{"no JSON": "nope", "nothing": "", "a list": "[1]", "a number": "1"} {
		b := bodyOf(t, text)
		require.True(t, b.Bad, name)
		require.Empty(t, b.Text("FlowID"), name)
	}
	require.False(t, bodyOf(t, `{"FlowID":null}`).Bad)
}

func TestDocumentsMayBeTextOrJSON(t *testing.T) {
	require.Equal(t, `{ "a":1 }`, bodyOf(t, `{"ParamsJSON":"{ \"a\":1 }"}`).Document("ParamsJSON"))
	require.Equal(t, `{"a": 1}`, bodyOf(t, `{"ParamsJSON":{"a": 1}}`).Document("ParamsJSON"))
	require.Empty(t, bodyOf(t, `{"ParamsJSON":5}`).Document("ParamsJSON"))
}

func TestAPathOfTwoDialectsIsToldApartByTheBody(t *testing.T) {
	s := &Server{claims: map[string][]dialectClaim{}}
	told := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, err := ReadBody(r)
			if err != nil {
				_, _ = w.Write([]byte(name + ": " + Judge(err).Text()))
				return
			}
			_, _ = w.Write([]byte(name + ": " + b.Text("x")))
		})
	}
	s.Claim("/both", func(b *Body) bool { return b.Has("mine") }, told("other"))
	shared := s.Shared("/both", told("owner"))
	for body, want := range map[string]string{`{"x":"1"}`: "owner: 1", `{"x":"2","mine":true}`: "other: 2", `nonsense`: "owner: "} {
		w := httptest.NewRecorder()
		shared.ServeHTTP(w, httptest.NewRequest("POST", "/both", strings.NewReader(body)))
		require.Equal(t, want, w.Body.String())
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/both", strings.NewReader(`{"mine":true}`))
	r.Body = http.MaxBytesReader(w, r.Body, 3)
	shared.ServeHTTP(w, r)
	require.Contains(t, w.Body.String(), "owner: the body is larger than 3 bytes")
}
