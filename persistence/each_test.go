package persistence_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// shelves is a store of tasks of one size that records how many were requested at once.
type shelves struct {
	longTask
	asked []int
}

func (s *shelves) Sizes(_ context.Context, tasks []string) ([]int64, error) {
	sizes := make([]int64, len(tasks))
	for i := range sizes {
		sizes[i] = s.size
	}
	return sizes, nil
}

func (s *shelves) Load(_ context.Context, tasks []string) ([]*persistence.Record, error) {
	s.asked = append(s.asked, len(tasks))
	records := make([]*persistence.Record, len(tasks))
	for i, id := range tasks {
		if id == "0" { // deleted since it was listed
			continue
		}
		row := s.row
		row.ID = id
		records[i] = &persistence.Record{TaskRow: row,
			Rows: []persistence.Row{{Seq: 1, Events: flow.AppendEvents(nil,
				[]flow.Event{{Type: flow.TaskCreated}})}}}
	}
	return records, nil
}

func TestBatchesOfAListAreBoundedByTheirSize(t *testing.T) {
	const megabyte = 1 << 20
	for name, tt := range map[string]struct {
		size  int64
		want  int // requested at once
		taken []int64
	}{
		"small ones":            {1000, 100, []int64{0}},
		"some of 100 kilobytes": {100 << 10, 40, []int64{24_000 << 10, 8000 << 10, 0}},
		"some of a megabyte":    {megabyte, 4, []int64{24 * megabyte, 8 * megabyte, 0}},
		"some of 64 megabytes":  {64 * megabyte, 1, []int64{6 * 64 * megabyte, 2 * 64 * megabyte, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			tasks := make([]string, 300)
			for i := range tasks {
				tasks[i] = fmt.Sprint(i)
			}
			s, room, seen := &shelves{}, &room{}, 0
			s.size, s.row.VersionID = tt.size, "v"
			reader := persistence.NewReader(s, flow.Limits{})
			ctx := persistence.InRoom(t.Context(), room)
			require.NoError(t, reader.Each(ctx, tasks, func(_ *persistence.View) error { seen++; return nil }))
			require.Equal(t, tt.want, s.asked[0])
			require.Equal(t, 299, seen)
			require.Equal(t, tt.taken, room.taken[:len(tt.taken)], "nobody holds some while waiting for more")

			enough := errors.New("enough")
			require.ErrorIs(t, reader.Each(ctx, tasks, func(*persistence.View) error { return enough }), enough)
		})
	}
}
