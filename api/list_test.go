package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// shelves is a reader of tasks of one size, which remembers how many it was asked for at once.
type shelves struct {
	Reader
	size  int
	asked []int
}

func (s *shelves) Views(_ context.Context, tasks []string) ([]*persistence.View, error) {
	s.asked = append(s.asked, len(tasks))
	views := make([]*persistence.View, len(tasks))
	for i, id := range tasks {
		views[i] = &persistence.View{TaskRow: persistence.TaskRow{ID: id}, Size: s.size}
	}
	views[0] = nil // it was deleted since it was listed
	return views, nil
}

func TestOfAListAsManyTasksAreReadAtOnceAsTheirSizeAllows(t *testing.T) {
	for name, tt := range map[string]struct {
		size int
		want []int // the first parts
	}{
		"small ones":            {1000, []int{10, 100, 100, 90}},
		"some of 100 kilobytes": {100 << 10, []int{10, 40, 40, 40}},
		"some of a megabyte":    {1 << 20, []int{10, 3, 3, 3}},
		"some of 64 megabytes":  {64 << 20, []int{10, 1, 1, 1}}, // of one that is gone nothing is learned
	} {
		t.Run(name, func(t *testing.T) {
			tasks := make([]string, 300)
			for i := range tasks {
				tasks[i] = fmt.Sprint(i)
			}
			s, seen := &shelves{size: tt.size}, 0
			require.NoError(t, (&graph{reader: s}).eachView(t.Context(), tasks, func(v *persistence.View) error { seen++; return nil }))
			require.Equal(t, tt.want, s.asked[:len(tt.want)])
			require.Equal(t, 300-len(s.asked), seen)
		})
	}
}

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
