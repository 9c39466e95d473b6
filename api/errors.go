package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// statusOf is the one place where errors become statuses. Families print the text in their dialect.
func statusOf(err error) int {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, persistence.ErrNotFound), errors.Is(err, persistence.ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, persistence.ErrDuplicate), errors.Is(err, persistence.ErrExists):
		return http.StatusConflict
	case errors.Is(err, persistence.ErrRefused):
		return http.StatusBadRequest
	case errors.Is(err, persistence.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	switch flow.KindOf(err) {
	case flow.Invalid:
		return http.StatusBadRequest
	case flow.NotFound:
		return http.StatusNotFound
	case flow.Conflict:
		return http.StatusConflict
	case flow.Limit:
		return http.StatusUnprocessableEntity
	case flow.Busy:
		return http.StatusTooManyRequests
	case flow.Denied:
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}

// textOf is what a caller may know about an error: everything he can act on, nothing about our inside.
func textOf(err error, status int) string {
	var e *flow.Error
	if errors.As(err, &e) {
		return e.Msg
	}
	if errors.Is(err, persistence.ErrUnavailable) {
		return "the store is not available; try again in a moment"
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return fmt.Sprintf("the body is larger than %d bytes: keep large data elsewhere and pass a reference, or have the member started with a larger --max-value", tooLarge.Limit)
	}
	switch status {
	case http.StatusBadRequest:
		return "a value cannot be stored: it is not valid UTF-8 text, or holds the character U+0000"
	case http.StatusNotFound:
		return "not found"
	case http.StatusConflict:
		return "exists already"
	case http.StatusServiceUnavailable:
		return "the engine did not answer in time; try again"
	}
	return "internal error; the server's log has more under this request's id"
}
