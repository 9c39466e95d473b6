package model

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

func (s *store) PutHook(ctx context.Context, h persistence.Hook) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if s.hooks[h.Name].Revision != h.Revision-1 {
		return persistence.ErrStale
	}
	s.hooks[h.Name] = cloneHook(h)
	return nil
}

func cloneHook(h persistence.Hook) persistence.Hook {
	h.Settings, h.Secrets = append([]byte{}, h.Settings...), append([]persistence.HookSecret{}, h.Secrets...)
	return h
}

func (s *store) Hook(ctx context.Context, name string) (*persistence.Hook, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	h, ok := s.hooks[name]
	if !ok {
		return nil, persistence.ErrNotFound
	}
	h = cloneHook(h)
	return &h, nil
}

func (s *store) ListHooks(ctx context.Context, after string, limit int) ([]persistence.Hook, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	list := []persistence.Hook{}
	for _, name := range slices.Sorted(maps.Keys(s.hooks)) {
		if name > after && len(list) < limit {
			list = append(list, cloneHook(s.hooks[name]))
		}
	}
	return list, nil
}

func (s *store) DeleteHook(ctx context.Context, name string) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if _, ok := s.hooks[name]; !ok {
		return persistence.ErrNotFound
	}
	delete(s.hooks, name)
	return nil
}

func (s *store) BeginDelivery(ctx context.Context, d persistence.Delivery) (*persistence.Delivery, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	key := [2]string{d.Hook, d.ID}
	if known, ok := s.deliveries[key]; ok {
		known.Answer = bytes.Clone(known.Answer)
		return &known, nil
	}
	d.Answer = nil
	s.deliveries[key] = d
	return nil, nil
}

func (s *store) EndDelivery(ctx context.Context, hook, id string, answer []byte) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	key := [2]string{hook, id}
	if d, ok := s.deliveries[key]; ok && d.Answer == nil {
		d.Answer = append([]byte{}, answer...)
		s.deliveries[key] = d
	}
	return nil
}

func (s *store) ForgetDeliveries(ctx context.Context, before int64, limit int) (int, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	old := slices.DeleteFunc(slices.Collect(maps.Values(s.deliveries)), func(d persistence.Delivery) bool { return d.Until >= before })
	slices.SortFunc(old, func(a, b persistence.Delivery) int { return cmp.Compare(a.Until, b.Until) })
	old = old[:min(len(old), limit)]
	for _, d := range old {
		delete(s.deliveries, [2]string{d.Hook, d.ID})
	}
	return len(old), nil
}
