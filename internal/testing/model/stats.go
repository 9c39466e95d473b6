package model

import (
	"context"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

func (s *store) AddStats(ctx context.Context, rows []persistence.StatsRow) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, r := range rows {
		if r.Flow != "" && !slices.ContainsFunc(s.flows, func(f persistence.Flow) bool { return f.ID == r.Flow }) {
			continue
		}
		sum := s.stats[r.StatsSpot]
		sum.Add(&r.Counts)
		s.stats[r.StatsSpot] = sum
	}
	return nil
}

func (s *store) ReadStats(ctx context.Context, f persistence.StatsFilter) ([]persistence.StatsRow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var list []persistence.StatsRow
	for spot, counts := range s.stats {
		if f.Picks(&spot) {
			row := persistence.StatsRow{StatsSpot: spot}
			row.Counts.Add(&counts)
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b persistence.StatsRow) int { return a.Compare(&b.StatsSpot) })
	return list, nil
}

func (s *store) DeleteStats(ctx context.Context, width, before int64, limit int) (int, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	deleted := 0
	for spot := range s.stats {
		if spot.Width == width && spot.Bucket < before && deleted < limit {
			delete(s.stats, spot)
			deleted++
		}
	}
	return deleted, nil
}
