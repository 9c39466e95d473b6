package flow

import "slices"

// FollowedError describes failed steps of a node after which the task continued as if they had
// completed, because on_error is follow. A failure that an `error` edge handles is not included.
type FollowedError struct {
	Node  string
	Times int
	Visit int    // visit of the last failure
	Error string // error of the last failure
	At    int64
}

// KeptFollowed is the maximum number of nodes for which a task keeps a FollowedError. The nodes
// that failed last stay; the journal has all failures.
const KeptFollowed = 20

// maxFollowedText is the maximum number of bytes kept of the error of a FollowedError.
const maxFollowedText = 1_000

// noteFollowed stores the error of a step as the newest FollowedError.
func (s evolveState) noteFollowed(e *Event) {
	f := FollowedError{Node: e.Node}
	if i := slices.IndexFunc(s.FollowedErrors, func(f FollowedError) bool { return f.Node == e.Node }); i >= 0 {
		f = s.FollowedErrors[i]
		s.FollowedErrors = slices.Delete(s.FollowedErrors, i, i+1)
	}
	f.Times, f.Visit, f.Error, f.At = f.Times+1, e.Visit, truncateText(e.Error, maxFollowedText), e.At
	s.Followed++
	s.FollowedErrors = append(s.FollowedErrors, f)
	if len(s.FollowedErrors) > KeptFollowed {
		s.FollowedErrors = slices.Delete(s.FollowedErrors, 0, 1)
	}
}
