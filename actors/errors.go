package actors

import (
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Member implements engine.Engine for this host.
var _ engine.Engine = (*Member)(nil)

// toCallerError converts an error about a task for external callers. In a cluster, a stopping
// member answers flow.Moved, so the caller retries at another member. A retry with the same request
// id does not repeat the request.
func (m memberRequests) toCallerError(err error) error {
	goes := errors.Is(err, errStopping) || errors.Is(err, errLeaving) || errors.Is(err, errLost)
	if goes && m.cfg.Others != nil {
		return flow.Errorf(flow.Moved, "%v", err)
	}
	return toEngineError(err)
}

// toEngineError converts an error for external callers, which do not know the store.
func toEngineError(err error) error {
	switch {
	case errors.Is(err, persistence.ErrUnavailable):
		return fmt.Errorf("%w: %w", engine.ErrUnavailable, err)
	case errors.Is(err, persistence.ErrNotFound), errors.Is(err, persistence.ErrUnknown):
		return flow.Errorf(flow.NotFound, "there is no such thing")
	case errors.Is(err, persistence.ErrRefused):
		return flow.Errorf(flow.Invalid, "a value cannot be stored: it is not valid UTF-8 text, or holds the character U+0000")
	}
	return err
}

// errMoved is the answer for a task that another member owns.
func errMoved(task string) error {
	return flow.Errorf(flow.Moved, "task %s has moved to another member: ask again", task)
}
