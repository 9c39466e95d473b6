package carriers

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

type functionHostKey struct{}

// FunctionHost is the side of the task for the carrier of a function that is a flow.
type FunctionHost struct {
	// Record returns when results of steps are stored and waits have begun. Its error is
	// flow.ErrOver if the function is no longer needed or another carrier has it, and
	// flow.ErrCodeStops if the function must stop behind these results. Any other error means that
	// they can never be stored.
	//
	// A wait ends with a step that Listen passes on, perhaps before Record returns. The end of a
	// wait that is over already is passed on again.
	Record func(steps []flow.CodeStep, waits []flow.CodeWait) error
	// Listen registers the receiver of the ends of waits. It is called in another goroutine, with
	// one step at a time, and gets those that came before too. A step may come several times, and
	// steps may come that the function does not wait for.
	Listen func(receive func(step flow.CodeStep))
}

// WithFunctionHost returns the context of a function that is a flow.
func WithFunctionHost(ctx context.Context, h FunctionHost) context.Context {
	return context.WithValue(ctx, functionHostKey{}, h)
}

// FunctionHostOf returns the host of the function with this context. Without one every Record fails
// with flow.ErrOver.
func FunctionHostOf(ctx context.Context) FunctionHost {
	h, ok := ctx.Value(functionHostKey{}).(FunctionHost)
	if !ok {
		h = FunctionHost{func([]flow.CodeStep, []flow.CodeWait) error { return flow.ErrOver }, func(func(flow.CodeStep)) {}}
	}
	return h
}
