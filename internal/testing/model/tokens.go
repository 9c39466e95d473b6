package model

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

func (s *store) AddToken(ctx context.Context, t persistence.Token) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if slices.ContainsFunc(s.tokens, func(o persistence.Token) bool {
		return o.ID == t.ID || o.Name == t.Name || bytes.Equal(o.Hash, t.Hash)
	}) {
		return persistence.ErrDuplicate
	}
	t.Hash = bytes.Clone(t.Hash)
	s.tokens = append(s.tokens, t)
	slices.SortFunc(s.tokens, func(a, b persistence.Token) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

func (s *store) ListTokens(ctx context.Context) ([]persistence.Token, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	list := append([]persistence.Token{}, s.tokens...)
	for i := range list {
		list[i].Hash = bytes.Clone(list[i].Hash)
	}
	return list, nil
}

func (s *store) UseToken(ctx context.Context, id string, at int64) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for i := range s.tokens {
		if t := &s.tokens[i]; t.ID == id {
			t.LastUsedAt = max(t.LastUsedAt, at)
		}
	}
	return nil
}

func (s *store) DeleteToken(ctx context.Context, id string) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	before := len(s.tokens)
	s.tokens = slices.DeleteFunc(s.tokens, func(t persistence.Token) bool { return t.ID == id })
	if len(s.tokens) == before {
		return persistence.ErrNotFound
	}
	return nil
}
