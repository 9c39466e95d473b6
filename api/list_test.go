package api_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
)

// answered answers errors like most families do.
func answered(h api.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			api.Refuse(w, r, err, func(w http.ResponseWriter, v api.Verdict) { api.WriteError(w, v.Status, v.Text()) })
		}
	})
}

func TestAListThatBreaksOffIsNotTakenForTheWholeOne(t *testing.T) {
	var log lines
	broken := errors.New("the store is on fire")
	s := serve(t, api.Config{Member: api.Member{Logger: slog.New(slog.NewJSONHandler(&log, nil))}}, func(s *api.Server) {
		for path, n := range map[string]int{"/none": 0, "/some": 3} {
			s.Mount(path, answered(func(w http.ResponseWriter, r *http.Request) error {
				list := api.ListWriter{To: w, Begin: "["}
				for i := range n {
					require.NoError(t, list.Add(i))
				}
				return list.End(r, broken, "]")
			}))
		}
		s.Mount("/all", answered(func(w http.ResponseWriter, r *http.Request) error {
			list := api.ListWriter{To: w, Begin: `{"data":[`}
			require.NoError(t, list.Add("x"))
			require.NoError(t, list.Add(2))
			return list.End(r, nil, `],"total":2}`)
		}))
		s.Mount("/empty", answered(func(w http.ResponseWriter, r *http.Request) error {
			return (&api.ListWriter{To: w, Begin: "["}).End(r, nil, "]")
		}))
	})
	resp, _ := s.do(t, "GET", "/none", "")
	require.Equal(t, 500, resp.StatusCode)
	resp, err := http.Get(s.url + "/some")
	if err == nil { // the beginning may or may not have been sent
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, resp.Body.Close())
	}
	require.Error(t, err)
	_, body := s.do(t, "GET", "/all", "")
	require.Equal(t, "{\"data\":[\"x\",2],\"total\":2}\n", body)
	_, body = s.do(t, "GET", "/empty", "")
	require.Equal(t, "[]\n", body)
	require.Contains(t, log.text(), "on fire")
}
