package child

import "errors"

// ForkerGone is the error of what a Forker had forked, or was to fork, when it ended.
type ForkerGone struct {
	How string // it has ended

	notAsked bool
}

func (e *ForkerGone) Error() string { return "who forks is gone: " + e.How }

// NotAsked says of an error of Forker.Start that nothing was begun: somebody else may be asked.
func NotAsked(err error) bool {
	var e *ForkerGone
	return errors.As(err, &e) && e.notAsked
}

func isForkerGone(err error) bool {
	var e *ForkerGone
	return errors.As(err, &e)
}
