// Package tenure lets who carries out a job ask whether the member that has it still holds its
// lease. One that slept too long may not: others have its tasks by then, and what it began would be
// begun a second time.
package tenure

import "context"

type contextKey struct{}

// With is a context of jobs of a member.
func With(ctx context.Context, held func() bool) context.Context {
	return context.WithValue(ctx, contextKey{}, held)
}

// Held reports whether the member of a job holds its lease at this moment. A context of nobody's
// member is told that it does.
func Held(ctx context.Context) bool {
	held, ok := ctx.Value(contextKey{}).(func() bool)
	return !ok || held()
}
