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

// Status is how an API has answered with an error; 0 = it has not answered.
func Status(err error) int {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

// Passing says that trying again may help: the API could not be reached, or has too much to do.
func Passing(err error) bool {
	if credentials := (*CredentialsError)(nil); errors.As(err, &credentials) {
		return false
	}
	passing := []int{0, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	return slices.Contains(passing, Status(err))
}

// mostText is how much of an answer is told.
const mostText = 1000

// Text is what an API has answered, or why it has not, without the URL.
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

// RetryAfter is when an API asks to be asked again; 0 = it does not say.
func RetryAfter(err error) time.Duration {
	var answer *googleapi.Error
	if !errors.As(err, &answer) || answer.Header == nil {
		return 0
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // a date is none
	return min(max(time.Duration(seconds)*time.Second, 0), time.Hour)
}
