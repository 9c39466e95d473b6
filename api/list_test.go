package api

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAListThatBreaksOffIsNotTakenForTheWholeOne(t *testing.T) {
	var log lines
	broken := errors.New("the store is on fire")
	s := serve(t, Config{Logger: slog.New(slog.NewJSONHandler(&log, nil))}, func(s *Server) {
		for path, n := range map[string]int{"/none": 0, "/some": 3} {
			s.Mount(path, answered(func(w http.ResponseWriter, r *http.Request) error {
				list := listWriter{w: w, begin: "["}
				for i := range n {
					require.NoError(t, list.add(i))
				}
				return list.end(r, broken, "]")
			}))
		}
		s.Mount("/all", answered(func(w http.ResponseWriter, r *http.Request) error {
			list := listWriter{w: w, begin: `{"data":[`}
			require.NoError(t, list.add("x"))
			require.NoError(t, list.add(2))
			return list.end(r, nil, `],"total":2}`)
		}))
		s.Mount("/empty", answered(func(w http.ResponseWriter, r *http.Request) error {
			return (&listWriter{w: w, begin: "["}).end(r, nil, "]")
		}))
	})
	resp, _ := s.do(t, "GET", "/none", "")
	require.Equal(t, 500, resp.StatusCode)
	resp, err := http.Get(s.url + "/some")
	if err == nil { // the beginning may have been sent, or not
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
