package child

import "errors"

// ForkerGone is the error for processes that a Forker had forked, or was asked to fork, when the
// Forker ended.
type ForkerGone struct {
	How string // how the Forker has ended

	notAsked bool
}

func (e *ForkerGone) Error() string { return "who forks is gone: " + e.How }

// NotAsked reports whether an error of Forker.Start means that nothing was started, so that the
// caller may try another Forker.
func NotAsked(err error) bool {
	var e *ForkerGone
	return errors.As(err, &e) && e.notAsked
}

func isForkerGone(err error) bool {
	var e *ForkerGone
	return errors.As(err, &e)
}
