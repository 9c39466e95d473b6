package persistence

import "errors"

// Outage is an error of a store that is not available, with the reason for it. It is
// ErrUnavailable, too.
type Outage struct {
	// Reason says in a few words what is wrong, such as "its disk is full". It names no path and no
	// address, so answers may show it.
	Reason string
	Err    error
}

func (o *Outage) Error() string {
	return "the store is not available, because " + o.Reason + ": " + o.Err.Error()
}

func (o *Outage) Unwrap() []error { return []error{ErrUnavailable, o.Err} }

// ReasonOf returns why a store is not available; "" when the error does not say so.
func ReasonOf(err error) string {
	if o := new(Outage); errors.As(err, &o) {
		return o.Reason
	}
	return ""
}
