package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"
)

// Default time limits.
const (
	StartTimeout     = 5 * time.Minute
	HeartbeatTimeout = time.Minute
)

// Attempt identifies an attempt whose files are checked.
type Attempt struct {
	Run         string `json:"run"`
	Folder      string `json:"folder"`
	Attempt     int    `json:"attempt"`
	StartMS     int64  `json:"start_ms"`     // time limit for the first status
	HeartbeatMS int64  `json:"heartbeat_ms"` // time limit between two heartbeats
	Since       int64  `json:"-"`            // time of dispatch
}

// Sound reports whether the attempt belongs to the run, so that folders of other runs are never
// read.
func (a *Attempt) Sound(run string) bool {
	rest, ok := strings.CutPrefix(a.Folder, RunFolder(run))
	task, rest, _ := strings.Cut(rest, "/")
	attempt, rest, ended := strings.Cut(rest, "/")
	return ok && a.Run == run && isFolderName(run) && isFolderName(task) && isFolderName(attempt) &&
		ended && rest == "" && a.StartMS > 0 && a.HeartbeatMS > 0
}

// Seen is the state of an attempt at the last look. The zero value means never seen.
type Seen struct {
	// last heartbeat of the worker; "" if it has not begun
	Beat string `json:"beat,omitempty"`
	// time when Beat was first seen, or when it could be read again after an outage
	ChangedAt int64  `json:"changed_at,omitempty"`
	Version   string `json:"version,omitempty"` // version of the status object
	// start time reported by the worker, or the time when the start was first seen
	BeganAt  int64 `json:"began_at,omitempty"`
	LookedAt int64 `json:"looked_at,omitempty"` // time of the last look
}

// Unheard excludes the time since the last look from the worker's silence, because the bucket could
// not be read during that time.
func (s Seen) Unheard(since, now int64) Seen {
	if s.LookedAt == 0 {
		s.LookedAt = max(s.ChangedAt, since)
	}
	s.ChangedAt = max(s.ChangedAt, since) + max(now-s.LookedAt, 0)
	return s
}

// Verdict is the result of looking at an attempt.
type Verdict struct {
	Ended  bool
	Said   bool            // whether the worker reported the end; false for a timeout
	Output json.RawMessage // result of a successful attempt, or nil
	Error  string          // error of a failed attempt
	Again  time.Duration   // time until the next look
	// BeganAt is the time when the worker began, by the worker's own clock if it reports one; 0 if
	// the work has not begun.
	BeganAt int64
	Seen    Seen
}

// Source reads statuses.
type Source interface {
	// Status reads a status. It returns changed = false if the status still has the given version.
	Status(ctx context.Context, key, version string) (text []byte, now string, changed bool, err error)
}

// Direct is a Source that reads every status from the bucket.
type Direct struct{ Bucket }

// maxStatus is the largest size of a status.
const maxStatus = 1 << 20

// Status reads a status. A status that is too large counts as malformed.
func (d Direct) Status(ctx context.Context, key, _ string) ([]byte, string, bool, error) {
	text, err := d.Get(ctx, key, maxStatus)
	return text, "", true, err
}

// Look returns the state of an attempt at time now. It returns an error if the state could not be
// read.
func (a *Attempt) Look(ctx context.Context, b Bucket, from Source, seen Seen, now int64, most int) (Verdict, error) {
	text, version, changed, err := from.Status(ctx, a.Folder+StatusFile, seen.Version)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return Verdict{}, err
	}
	var s reportedStatus
	if err == nil && changed {
		seen.Version = version
		if len(text) <= maxStatus && s.parseStatus(text, a.Attempt) {
			if seen.BeganAt == 0 {
				seen.BeganAt = s.beganAt(now)
			}
			switch {
			case s.Status == Failed:
				return Verdict{Ended: true, Said: true, Error: s.failureText(), BeganAt: seen.BeganAt}, nil
			case s.Status == Success:
				v, err := a.Output(ctx, b, most)
				v.BeganAt = seen.BeganAt
				return v, err
			case s.heartbeatMark() != seen.Beat:
				seen.Beat, seen.ChangedAt = s.heartbeatMark(), now
			}
		}
	}
	v := a.waitVerdict(seen, now)
	if v.Ended && errors.Is(err, fs.ErrPermission) {
		v.Error += fmt.Sprintf(": %s is there, but the member may not read it: %v", StatusFile, err)
	}
	return v, nil
}

// Output returns the result of a successful attempt.
func (a *Attempt) Output(ctx context.Context, b Bucket, most int) (Verdict, error) {
	text, err := b.Get(ctx, a.Folder+OutputFile, most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Verdict{Ended: true, Said: true}, nil
	case errors.Is(err, fs.ErrPermission):
		return Verdict{Ended: true, Said: true, Error: fmt.Sprintf("%s is there, but the member may not read it: %v", OutputFile, err)}, nil
	case err != nil:
		return Verdict{}, err
	case len(text) > most:
		return Verdict{Ended: true, Said: true,
			Error: fmt.Sprintf("%s has more than %d bytes, the limit of a value (--max-value); "+
				"keep large data elsewhere and pass a reference", OutputFile, most)}, nil
	case !json.Valid(text) || !utf8.Valid(text):
		return Verdict{Ended: true, Said: true, Error: OutputFile + " is no JSON in UTF-8"}, nil
	}
	return Verdict{Ended: true, Said: true, Output: text}, nil
}

// waitVerdict returns the verdict for an attempt that has not ended: wait on, or fail because a
// time limit has passed.
func (a *Attempt) waitVerdict(seen Seen, now int64) Verdict {
	from, limit, text := max(a.Since, seen.ChangedAt), a.StartMS, "job never started"
	if seen.Beat != "" {
		from, limit, text = seen.ChangedAt, a.HeartbeatMS, "heartbeat timeout"
	}
	silent := now - from
	if silent >= limit {
		return Verdict{Ended: true, Error: text, BeganAt: seen.BeganAt}
	}
	seen.LookedAt = now
	return Verdict{Seen: seen, BeganAt: seen.BeganAt, Again: nextPause(now-a.Since, silent, limit, seen.Beat != "")}
}

// nextPause returns the time until the next look: 2 s during the attempt's first minute, 5 s later,
// and 10 s if the worker has been silent for more than half of its time limit. The pause never
// exceeds the rest of that time limit.
func nextPause(age, silent, limit int64, begun bool) time.Duration {
	ms := int64(5_000)
	switch {
	case begun && silent > limit/2:
		ms = 10_000
	case age < time.Minute.Milliseconds():
		ms = 2_000
	}
	return time.Duration(min(ms, limit-silent)) * time.Millisecond
}
