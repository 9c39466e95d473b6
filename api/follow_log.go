package api

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

const (
	// logParts is the number of chunks of a log that are read at once.
	logParts = 32
	// A follower reads again after followSoon if the last read returned parts. Without new parts,
	// the pause grows up to followLate.
	followSoon, followLate = 200 * time.Millisecond, 800 * time.Millisecond
)

// LogReader reads logs in parts, and computes the size of missing parts.
type LogReader struct {
	Store  persistence.Logs
	Filter persistence.LogFilter // selects the next parts; advances with each read

	readSizes map[string]persistence.LogSize // position up to which the log of each job was read
}

// Next returns the next chunks. Missing of each part is the size of the deleted log before the
// part.
func (r *LogReader) Next(ctx context.Context) (parts []LogPart, more bool, err error) {
	f := r.Filter
	f.Limit = logParts
	list, err := r.Store.ReadLog(ctx, f)
	if err != nil {
		return nil, false, err
	}
	for _, p := range list {
		parts = append(parts, LogPart{LogPart: p, Missing: r.missingBefore(&p)})
		r.Filter.After = p.Number
	}
	return parts, len(list) == logParts, nil
}

// LogPart is a chunk of a log. Missing is the size of the deleted part of the attempt's log before
// the chunk.
type LogPart struct {
	persistence.LogPart
	Missing persistence.LogSize
}

// missingBefore returns the size of the deleted log between the last read part and p.
func (r *LogReader) missingBefore(p *persistence.LogPart) (s persistence.LogSize) {
	if r.readSizes == nil {
		r.readSizes = map[string]persistence.LogSize{}
	}
	seen, known := r.readSizes[p.Job]
	if known || p.Oldest {
		s = persistence.LogSize{Chars: p.Before.Chars - seen.Chars, Lines: p.Before.Lines - seen.Lines}
	}
	r.readSizes[p.Job] = p.Before.Plus(p.Lines)
	return s
}

// FollowLog passes the parts of a log to tell as they arrive; see FollowParts.
func FollowLog(ctx context.Context, r *LogReader, over func(context.Context) (bool, error),
	troubled func(error) error, tell func([]LogPart) error) error {
	return FollowParts(ctx, r.Next, over, troubled, tell)
}

// FollowParts passes the parts that next returns to tell as they arrive. When over returns true, it
// reads the rest and returns. It reads the store only a few times per second, so any member can
// follow values that another member stores. When the store does not answer, it calls troubled, and
// returns the error of troubled if there is one.
func FollowParts[P any](ctx context.Context, next func(context.Context) (parts []P, more bool, err error),
	over func(context.Context) (bool, error), troubled func(error) error, tell func([]P) error) error {
	last := false
	for pause := followSoon; ; {
		parts, more, err := next(ctx)
		if err == nil && len(parts) > 0 {
			pause = followSoon
			if err := tell(parts); err != nil {
				return err
			}
		}
		switch {
		case err == nil && more:
			continue
		case err == nil && last:
			return nil
		case err == nil:
			if last, err = over(ctx); err == nil && last {
				continue // read the parts stored before the end
			}
		}
		if err != nil {
			if err := troubled(err); err != nil {
				return err
			}
		}
		if !sleepContext(ctx, pause) {
			return ctx.Err()
		}
		pause = min(pause*2, followLate)
	}
}

func sleepContext(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
