package sqlite

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// fenceAll: the lock on the file proves that nobody from before is alive.
func (s *store) fenceAll(ctx context.Context) error {
	return s.write(ctx, "fence", func(t tx) error {
		_, err := t.exec("UPDATE members SET fenced_at = ? WHERE fenced_at = 0", time.Now().UnixMilli())
		return err
	})
}

// Locked: the file's lock is held until Close, or until the process ends.
func (s *store) Locked() bool { return true }

// holder is the incarnation that may write.
type holder struct {
	incarnation, name string
	until             int64
}

// Join lives within one process, so it waits only for a predecessor of this same store.
func (s *store) Join(ctx context.Context, name string, ttl time.Duration) (string, error) {
	incarnation := rand.Text()
	var first holder
	for {
		var now holder
		err := s.write(ctx, "join", func(t tx) (err error) {
			now, err = t.join(incarnation, name, ttl)
			return err
		})
		switch {
		case err != nil:
			return "", err
		case now.incarnation == incarnation:
			return incarnation, nil
		case first.incarnation == "":
			first = now
		case first != now:
			return "", fmt.Errorf("member %s (%s): %w", now.name, now.incarnation, persistence.ErrTaken)
		}
		if err := pause(ctx, now.until); err != nil {
			return "", fmt.Errorf("join: %w", err)
		}
	}
}

// join tells who holds the store afterwards.
func (t tx) join(incarnation, name string, ttl time.Duration) (holder, error) {
	now := time.Now()
	var old holder
	err := t.one("SELECT incarnation, name, lease_until FROM members WHERE fenced_at = 0", nil,
		&old.incarnation, &old.name, &old.until)
	if err == nil && old.until > now.UnixMilli() {
		return old, nil
	}
	if err != nil && !isNone(err) {
		return holder{}, err
	}
	if _, err := t.exec("UPDATE members SET fenced_at = ? WHERE fenced_at = 0", now.UnixMilli()); err != nil {
		return holder{}, err
	}
	h := holder{incarnation, name, now.Add(ttl).UnixMilli()}
	_, err = t.exec("INSERT INTO members (incarnation, name, joined_at, lease_until) VALUES (?, ?, ?, ?)",
		h.incarnation, h.name, now.UnixMilli(), h.until)
	return h, err
}

// pause waits until a lease has run out, looking every now and then whether it was renewed.
func pause(ctx context.Context, until int64) error {
	wait := time.NewTimer(min(time.Until(time.UnixMilli(until+1)), 100*time.Millisecond))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *store) Renew(ctx context.Context, incarnation string, ttl time.Duration) (time.Time, error) {
	var now time.Time
	err := s.write(ctx, "renew", func(t tx) error {
		now = time.Now()
		n, err := t.exec("UPDATE members SET lease_until = ? WHERE incarnation = ? AND fenced_at = 0",
			now.Add(ttl).UnixMilli(), incarnation)
		if err == nil && n == 0 {
			return persistence.ErrFenced
		}
		return err
	})
	return now, err
}

func (s *store) Leave(ctx context.Context, incarnation string) error {
	return s.write(ctx, "leave", func(t tx) error {
		_, err := t.exec("UPDATE members SET fenced_at = ? WHERE incarnation = ? AND fenced_at = 0",
			time.Now().UnixMilli(), incarnation)
		return err
	})
}

// fence says whether an incarnation may write.
func (t tx) fence(incarnation string) error {
	var one int
	err := t.one("SELECT 1 FROM members WHERE incarnation = ? AND fenced_at = 0", []any{incarnation}, &one)
	if isNone(err) {
		return persistence.ErrFenced
	}
	return err
}
