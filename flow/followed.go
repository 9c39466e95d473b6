package flow

import "slices"

// FollowedError tells of failed steps of a node that its task went on after as if they had
// completed, because on_error says follow. What an `error` edge leads on from is handled, and no
// such thing.
type FollowedError struct {
	Node  string
	Times int
	Visit int    // the last time
	Error string // that of the last time
	At    int64
}

// KeptFollowed bounds of how many nodes a task keeps such errors: those that failed last. The
// journal has all.
const KeptFollowed = 20

// maxFollowedText is how many bytes of an error are kept with them.
const maxFollowedText = 1_000

// noteFollowed keeps the error of a step, as the last one.
func (s *State) noteFollowed(e *Event) {
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
