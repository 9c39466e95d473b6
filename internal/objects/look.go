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

// Limits when nothing else is said.
const (
	StartTimeout     = 5 * time.Minute
	HeartbeatTimeout = time.Minute
)

// Attempt is one whose files are looked at.
type Attempt struct {
	Run         string `json:"run"`
	Folder      string `json:"folder"`
	Attempt     int    `json:"attempt"`
	StartMS     int64  `json:"start_ms"`     // how long nobody may say anything
	HeartbeatMS int64  `json:"heartbeat_ms"` // how long the worker may be silent
	Since       int64  `json:"-"`            // when it was dispatched
}

// Sound reports whether it can be an attempt of a run: nobody looks into the folders of others.
func (a *Attempt) Sound(run string) bool {
	rest, ok := strings.CutPrefix(a.Folder, RunFolder(run))
	task, rest, _ := strings.Cut(rest, "/")
	attempt, rest, ended := strings.Cut(rest, "/")
	return ok && a.Run == run && isFolderName(run) && isFolderName(task) && isFolderName(attempt) && ended && rest == "" && a.StartMS > 0 && a.HeartbeatMS > 0
}

// Seen is what was seen of an attempt the last time. The zero value is nothing.
type Seen struct {
	Beat      string `json:"beat,omitempty"`       // of the worker; "" = it has not begun
	ChangedAt int64  `json:"changed_at,omitempty"` // when that was first seen, or when it could be seen again after it could not for a while
	Version   string `json:"version,omitempty"`    // of the status
	BeganAt   int64  `json:"began_at,omitempty"`   // since when the worker says that it is at it, or when that was first seen
	LookedAt  int64  `json:"looked_at,omitempty"`  // when it was looked at the last time
}

// Unheard leaves out the time since the last look, in which nothing could be heard: that was no
// silence of the worker.
func (s Seen) Unheard(since, now int64) Seen {
	if s.LookedAt == 0 {
		s.LookedAt = max(s.ChangedAt, since)
	}
	s.ChangedAt = max(s.ChangedAt, since) + max(now-s.LookedAt, 0)
	return s
}

// Verdict is how an attempt is.
type Verdict struct {
	Ended  bool
	Said   bool            // by the worker; else it was waited for in vain
	Output json.RawMessage // of one that went well, or nil
	Error  string          // of one that has failed
	Again  time.Duration   // when to look again
	// BeganAt is since when the worker is at it, by its clock if it says so; 0 = it is not.
	BeganAt int64
	Seen    Seen
}

// Source is where statuses come from.
type Source interface {
	// Status reads one. changed = false: it is still the one of this version.
	Status(ctx context.Context, key, version string) (text []byte, now string, changed bool, err error)
}

// Direct reads each status.
type Direct struct{ Bucket }

// maxStatus is how large a status may be.
const maxStatus = 1 << 20

// Status reads it. One that is too large makes no sense.
func (d Direct) Status(ctx context.Context, key, _ string) ([]byte, string, bool, error) {
	text, err := d.Get(ctx, key, maxStatus)
	return text, "", true, err
}

// Look tells how an attempt is, at a time. An error means that this could not be seen.
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

// Output is what came of an attempt that went well.
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
		return Verdict{Ended: true, Said: true, Error: fmt.Sprintf("%s has more than %d bytes, the limit of a value (--max-value); keep large data elsewhere and pass a reference", OutputFile, most)}, nil
	case !json.Valid(text) || !utf8.Valid(text):
		return Verdict{Ended: true, Said: true, Error: OutputFile + " is no JSON in UTF-8"}, nil
	}
	return Verdict{Ended: true, Said: true, Output: text}, nil
}

// waitVerdict is how an attempt is that goes on: it may have waited for long enough.
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

// nextPause is how long it is until an attempt is looked at again: 2 s in its first minute, 5 s
// later, and 10 s where its worker has been silent for more than half of what it may be. Nobody is
// waited for longer than he may be silent.
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
