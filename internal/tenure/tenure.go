// Package tenure lets the code that carries out a job check whether its member still holds the
// lease. A member loses the lease by a long suspension: then other members have its tasks, and its
// work would be started twice.
package tenure

import "context"

type contextKey struct{}

// With returns a context for jobs of a member.
func With(ctx context.Context, held func() bool) context.Context {
	return context.WithValue(ctx, contextKey{}, held)
}

// Held reports whether the member of a job holds its lease at this moment. It returns true for a
// context without a member.
func Held(ctx context.Context) bool {
	held, ok := ctx.Value(contextKey{}).(func() bool)
	return !ok || held()
}
