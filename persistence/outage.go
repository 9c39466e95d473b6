package persistence

import "errors"

// Outage is the error of an unavailable store, with the reason. It wraps ErrUnavailable.
type Outage struct {
	// Reason describes the problem in a few words, such as "its disk is full". It contains no path
	// and no address, so answers may show it.
	Reason string
	Err    error
}

func (o *Outage) Error() string {
	return "the store is not available, because " + o.Reason + ": " + o.Err.Error()
}

func (o *Outage) Unwrap() []error { return []error{ErrUnavailable, o.Err} }

// ReasonOf returns the reason why a store is unavailable, or "" if the error contains none.
func ReasonOf(err error) string {
	if o := new(Outage); errors.As(err, &o) {
		return o.Reason
	}
	return ""
}
