// idScope is a context with ids, nested in another context.
package logids

import (
	"context"
	"log/slog"
)

type contextKey struct{}

// idScope is a context with ids, nested in another one.
type idScope struct {
	ids    func() []slog.Attr
	around *idScope
}

// With returns a context whose log lines contain the given attributes.
func With(ctx context.Context, ids func() []slog.Attr) context.Context {
	around, _ := ctx.Value(contextKey{}).(*idScope)
	return context.WithValue(ctx, contextKey{}, &idScope{ids, around})
}

// Handler returns a handler that adds the ids and calls next.
func Handler(next slog.Handler) slog.Handler { return idHandler{next} }

type idHandler struct{ next slog.Handler }

func (h idHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h idHandler) Handle(ctx context.Context, r slog.Record) error {
	w, _ := ctx.Value(contextKey{}).(*idScope)
	if w == nil {
		return h.next.Handle(ctx, r)
	}
	said := map[string]bool{}
	r.Attrs(func(a slog.Attr) bool {
		said[a.Key] = true
		return true
	})
	r = r.Clone()
	for ; w != nil; w = w.around {
		for _, a := range w.ids() {
			if !said[a.Key] {
				said[a.Key] = true
				r.AddAttrs(a)
			}
		}
	}
	return h.next.Handle(ctx, r)
}

func (h idHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return idHandler{h.next.WithAttrs(attrs)}
}
func (h idHandler) WithGroup(name string) slog.Handler { return idHandler{h.next.WithGroup(name)} }
