package api

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

const (
	// logParts is how many chunks of a log are read at once.
	logParts = 32
	// A follower looks again after logSoon when there was something, and up to logLate later when
	// there was nothing for a while.
	logSoon, logLate = 200 * time.Millisecond, 800 * time.Millisecond
)

// LogReader reads logs by the part, and knows what is missing.
type LogReader struct {
	Store  persistence.Logs
	Filter persistence.LogFilter // what it has read to moves on

	readSizes map[string]persistence.LogSize // by job, up to where it was read
}

// Next reads what there is behind the last part; Missing says what of each attempt's log is no
// longer kept before a part.
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

// LogPart is a chunk, and what is not kept of the attempt's log before it.
type LogPart struct {
	persistence.LogPart
	Missing persistence.LogSize
}

// missingBefore is what was not read before a part because it is not kept any more.
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

// FollowLog calls tell with the parts of a log as they come, until it has read all that there is
// after over has said yes. It asks the store a few times a second at most, so any member tells what
// another one stores. troubled hears that the store does not answer, and may end it with an error.
func FollowLog(ctx context.Context, r *LogReader, over func(context.Context) (bool, error), troubled func(error) error, tell func([]LogPart) error) error {
	last := false
	for pause := logSoon; ; {
		parts, more, err := r.Next(ctx)
		if err == nil && len(parts) > 0 {
			pause = logSoon
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
				continue // with what came before it was over
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
		pause = min(pause*2, logLate)
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
