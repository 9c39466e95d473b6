package actors

import (
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// A member is what an engine is on this host.
var _ engine.Engine = (*Member)(nil)

// toCallerError is an error as those outside hear it of a task: where there are other members, one
// that goes has the task no longer, or soon not, so whoever asks is to ask again. What was asked
// may have been done: under the same request id it is not done twice.
func (m *Member) toCallerError(err error) error {
	goes := errors.Is(err, errStopping) || errors.Is(err, errLeaving) || errors.Is(err, errLost)
	if goes && m.cfg.Others != nil {
		return flow.Errorf(flow.Moved, "%v", err)
	}
	return toEngineError(err)
}

// toEngineError is an error as those outside hear it, who know nothing of the store.
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
