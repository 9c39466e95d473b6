package api

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

const (
	// logParts is the number of chunks of a log that are read at once.
	logParts = 32
	// A follower reads again after followSoon if the last read returned something. After a while
	// without new parts it waits up to followLate.
	followSoon, followLate = 200 * time.Millisecond, 800 * time.Millisecond
)

// LogReader reads logs in parts, and computes which parts are missing.
type LogReader struct {
	Store  persistence.Logs
	Filter persistence.LogFilter // moves on as parts are read

	readSizes map[string]persistence.LogSize // by job, the position up to which it was read
}

// Next returns the chunks that follow the last part. The field Missing of each part is the size of
// the log before it that is no longer stored.
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

// LogPart is a chunk, with the size of the attempt's log before it that is no longer stored.
type LogPart struct {
	persistence.LogPart
	Missing persistence.LogSize
}

// missingBefore returns the size of the unread log before a part that is no longer stored.
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

// FollowLog passes on the parts of a log as they arrive, see FollowParts.
func FollowLog(ctx context.Context, r *LogReader, over func(context.Context) (bool, error),
	troubled func(error) error, tell func([]LogPart) error) error {
	return FollowParts(ctx, r.Next, over, troubled, tell)
}

// FollowParts passes on the parts that next reads as they arrive. After over has returned true it
// reads the rest and returns. It reads the store a few times per second at most, so any member can
// follow the values that another one stores. If the store does not answer, it calls troubled, which
// may end it by returning an error.
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
