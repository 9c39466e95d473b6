package model

import (
	"context"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

func (s *store) AppendLog(ctx context.Context, chunks []persistence.LogChunk, keep int) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	tails := s.logTails(chunks)
	for _, row := range tails.Add(chunks) {
		rows := append(s.logs[row.Task], row)
		s.logs[row.Task] = slices.DeleteFunc(rows, func(r persistence.LogRow) bool {
			return r.Job == row.Job && r.N < row.N && r.Before.Chars < tails.Cut(row.Job, keep)
		})
	}
	return nil
}

func (s *store) logTails(chunks []persistence.LogChunk) persistence.LogTails {
	t := persistence.LogTails{Tasks: map[string]int64{}, Jobs: map[string]persistence.LogSize{}, Sources: map[persistence.LogSource]int64{}}
	for _, c := range chunks {
		if s.tasks[c.Task] == nil {
			continue
		}
		t.Tasks[c.Task] = 0
		for _, r := range s.logs[c.Task] {
			t.Tasks[c.Task], t.Jobs[r.Job], t.Sources[persistence.LogSource{Job: r.Job, Source: r.Source}] = r.N, r.After, r.Number
		}
	}
	return t
}

func (s *store) ReadLog(ctx context.Context, f persistence.LogFilter) ([]persistence.LogPart, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	parts, seen := []persistence.LogPart{}, map[string]bool{}
	for _, r := range s.logs[f.Task] {
		oldest := !seen[r.Job]
		seen[r.Job] = true
		if r.N > f.After && (f.Job == "" || r.Job == f.Job) && len(parts) < f.Limit {
			parts = append(parts, r.Part(oldest))
		}
	}
	return parts, nil
}
