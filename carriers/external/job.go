package external

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// httpJob is the data of a custom_http job.
type httpJob struct {
	URL          string                     `json:"url"`
	Method       string                     `json:"method"`
	Headers      map[string]json.RawMessage `json:"headers"`
	StatusField  string                     `json:"status_field"`
	SuccessValue string                     `json:"success_value"`
	FailureValue string                     `json:"failure_value"`
	SuccessCodes []int                      `json:"success_status_codes"`
	// These are the names of the Python SDK for the status field and its success value.
	CompletionField string `json:"completion_field"`
	CompletionValue string `json:"completion_value"`
}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}

// decodeJob reads the data of a job. With the field name of the SDK, the default success value is
// `completed`.
func (h *HTTP) decodeJob(x flow.External) (*httpJob, error) {
	j := &httpJob{}
	if err := json.Unmarshal(x.Data, j); err != nil {
		return nil, fmt.Errorf("the job %.80q has fields of the wrong type: %w", x.ID, err)
	}
	success := "success"
	if j.CompletionField != "" {
		success = "completed"
	}
	j.StatusField = cmp.Or(j.StatusField, j.CompletionField, "status")
	j.SuccessValue = cmp.Or(j.SuccessValue, j.CompletionValue, success)
	j.Method = cmp.Or(strings.ToUpper(j.Method), http.MethodGet)
	switch {
	case j.isMock() && !h.opts.Mock:
		return nil, errors.New("mock:// is not allowed on this server; its operator can allow it with --allow-mock")
	case j.isMock():
		return j, nil
	case !slices.Contains(methods, j.Method):
		return nil, fmt.Errorf("unsupported method %.20q: use GET, POST, PUT or DELETE", j.Method)
	}
	u, err := url.Parse(j.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("the job %.80q has no url that can be called: want http:// or https://", x.ID)
	}
	return j, nil
}

const mockScheme = "mock://"

// isMock reports whether a job is a mock for tests.
func (j *httpJob) isMock() bool { return strings.HasPrefix(j.URL, mockScheme) }

// mockStatus returns the status of a mock job, which its URL contains.
func (j *httpJob) mockStatus() flow.ExternalStatus {
	switch rest := strings.TrimPrefix(j.URL, mockScheme); {
	case strings.HasPrefix(rest, "success"):
		return flow.ExternalStatus{Ended: true}
	case strings.HasPrefix(rest, "failed"):
		return failedStatus("Mock job failed")
	}
	return flow.ExternalStatus{}
}
