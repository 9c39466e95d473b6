package carriers

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

type functionHostKey struct{}

// FunctionHost connects the carrier of a function flow to the task.
type FunctionHost struct {
	// Record returns when results of steps are stored and waits have begun. It returns flow.ErrOver
	// if the function is no longer needed here, and flow.ErrCodeStops if the function must stop
	// after these results. Any other error is permanent.
	//
	// A wait ends with a step that Listen passes on, perhaps before Record returns. The end of a
	// wait that has ended already is passed on again.
	Record func(steps []flow.CodeStep, waits []flow.CodeWait) error
	// Listen registers the receiver of the ends of waits, including earlier ones. receive is called
	// in another goroutine, with one step at a time. A step may come several times, and steps may
	// come without a matching wait.
	Listen func(receive func(step flow.CodeStep))
}

// WithFunctionHost returns a context with the host of a function flow.
func WithFunctionHost(ctx context.Context, h FunctionHost) context.Context {
	return context.WithValue(ctx, functionHostKey{}, h)
}

// FunctionHostOf returns the host in a context. Without a host, every Record fails with
// flow.ErrOver.
func FunctionHostOf(ctx context.Context) FunctionHost {
	h, ok := ctx.Value(functionHostKey{}).(FunctionHost)
	if !ok {
		h = FunctionHost{func([]flow.CodeStep, []flow.CodeWait) error { return flow.ErrOver }, func(func(flow.CodeStep)) {}}
	}
	return h
}
