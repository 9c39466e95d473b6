package model

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// patience is how often Join looks whether a lease was renewed.
const patience = 100 * time.Millisecond

func (s *store) Join(ctx context.Context, name string, ttl time.Duration) (string, error) {
	var first member
	for {
		incarnation, old, err := s.join(ctx, name, ttl)
		switch {
		case err != nil || incarnation != "":
			return incarnation, err
		case first.incarnation == "":
			first = old
		case first != old:
			return "", fmt.Errorf("member %s (%s): %w", old.name, old.incarnation, persistence.ErrTaken)
		}
		if err := s.options.Sleep(ctx, min(old.until.Sub(s.options.Now()), patience)); err != nil {
			return "", err
		}
	}
}

// join makes a new incarnation, or tells who is in the way.
func (s *store) join(ctx context.Context, name string, ttl time.Duration) (string, member, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return "", member{}, err
	}
	defer leave()
	now := s.options.Now()
	if s.member != nil && s.member.until.After(now) {
		return "", *s.member, nil
	}
	s.joined++
	s.member = &member{fmt.Sprintf("%s-%d", name, s.joined), name, now.Add(ttl)}
	return s.member.incarnation, member{}, nil
}

func (s *store) Renew(ctx context.Context, incarnation string, ttl time.Duration) (time.Time, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer leave()
	if !s.may(incarnation) {
		return time.Time{}, persistence.ErrFenced
	}
	now := s.options.Now()
	s.member.until = now.Add(ttl)
	return now, nil
}

// Locked: members of one model may well be on different machines.
func (s *store) Locked() bool { return false }

func (s *store) Leave(ctx context.Context, incarnation string) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if s.may(incarnation) {
		s.member = nil
	}
	return nil
}

// may says whether an incarnation writes: whoever is not the member has been fenced.
func (s *store) may(incarnation string) bool {
	return s.member != nil && s.member.incarnation == incarnation
}
