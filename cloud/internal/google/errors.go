package google

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
)

// Status returns the HTTP status of an API error; 0 if there was no answer.
func Status(err error) int {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

// Passing reports whether a retry may help: the API could not be reached, or is overloaded.
func Passing(err error) bool {
	if credentials := (*CredentialsError)(nil); errors.As(err, &credentials) {
		return false
	}
	passing := []int{0, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	return slices.Contains(passing, Status(err))
}

// mostText is the maximal length of a reported answer.
const mostText = 1000

// Text returns the API's error text, or the reason for a missing answer, without the URL.
func Text(err error) string {
	var answer *googleapi.Error
	var unreached *url.Error
	var credentials *CredentialsError
	text := err.Error()
	switch {
	case errors.As(err, &credentials):
		text = credentials.Error()
	case errors.As(err, &answer):
		text = answer.Message
		if text == "" {
			text = strings.TrimSpace(answer.Body)
		}
	case errors.As(err, &unreached):
		text = unreached.Err.Error()
	}
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	return text
}

// RetryAfter returns the pause requested by an API; 0 if none.
func RetryAfter(err error) time.Duration {
	var answer *googleapi.Error
	if !errors.As(err, &answer) || answer.Header == nil {
		return 0
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // a date counts as 0
	return min(max(time.Duration(seconds)*time.Second, 0), time.Hour)
}
