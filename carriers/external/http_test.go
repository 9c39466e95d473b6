package external_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/external"
	"github.com/troupe-engine/troupe/flow"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// answering starts a server with the given handler.
func answering(t *testing.T, handler http.HandlerFunc) (url string) {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

// poll polls a job with the given fields besides its url.
func poll(t *testing.T, o external.Options, url, fields string, failures int) (flow.ExternalStatus, error) {
	t.Helper()
	data := fmt.Sprintf(`{"service_type": "custom_http", "job_id": "j", "url": %q%s}`, url, fields)
	require.True(t, json.Valid([]byte(data)), data)
	return external.NewHTTP(o).Poll(t.Context(), flow.External{Service: external.CustomHTTP,
		ID: "j", Data: json.RawMessage(data), Failures: failures})
}

func TestAResponseDeterminesTheJobStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		status        int
		answer        string
		fields        string
		ended         bool
		failure, soft string
	}{
		"another value goes on": {answer: `{"status": "running"}`},
		"success":               {answer: `{"status": "success"}`, ended: true},
		"a value of one's own": {answer: `{"state": "done"}`,
			fields: `, "status_field": "state", "success_value": "done"`, ended: true},
		"the SDK's spelling": {answer: `{"state": "completed"}`,
			fields: `, "completion_field": "state"`, ended: true},
		"a field within others": {answer: `{"job": {"state": "success"}}`,
			fields: `, "status_field": "job.state"`, ended: true},
		"failure": {answer: `{"status": "broken"}`,
			fields: `, "failure_value": "broken"`, ended: true, failure: "Job failed with status: broken"},
		"a status of HTTP": {status: 404, answer: `{"error": "gone"}`,
			ended: true, failure: "HTTP request failed with status 404: gone"},
		"a status of HTTP without a text": {status: 400, answer: `no`, ended: true,
			failure: "HTTP request failed with status 400: Unknown error"},
		"one that is to be tried again": {status: 503, answer: `{}`,
			soft: "HTTP request failed with status 503: Unknown error"},
		"too many requests":    {status: 429, answer: `{}`, soft: "status 429"},
		"no JSON":              {answer: `<html>`, soft: "no JSON object"},
		"the field is missing": {answer: `{}`, soft: `no text in the field "status"`},
		"the field is no text": {answer: `{"status": 7}`, soft: `no text in the field "status"`},
		"statuses that mean success": {status: 404, answer: `{"status": "success"}`,
			fields: `, "success_status_codes": [404]`, ended: true},
		"a status that then does not": {status: 201, answer: `{"status": "success"}`,
			fields: `, "success_status_codes": [200]`, ended: true, failure: "status 201"},
		"a method that there is not": {answer: `{}`, fields: `, "method": "TRACE"`,
			ended: true, failure: "unsupported method"},
		"a header whose value is no text": {answer: `{}`,
			fields: `, "headers": {"X-A": 1}`, ended: true, failure: "neither a text nor"},
		"a header that would be two": {answer: `{}`,
			fields: `, "headers": {"X-A": "a\r\nb: c"}`, ended: true, failure: "none that can be sent"},
		"a secret where there are none": {answer: `{}`,
			fields: `, "headers": {"X-A": {"secret": "s"}}`, ended: true,
			failure: "this server has no secrets"},
		"fields of another type than they may have": {answer: `{}`, fields: `, "headers": 7`,
			ended: true, failure: "fields of the wrong type"},
	} {
		t.Run(name, func(t *testing.T) {
			url := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(max(tt.status, 200))
				fmt.Fprint(w, tt.answer)
			})
			status, err := poll(t, external.Options{Networks: loopback}, url, tt.fields, 0)
			if tt.soft != "" {
				require.ErrorContains(t, err, tt.soft)
				status, err = poll(t, external.Options{Networks: loopback}, url, tt.fields, 4)
				require.NoError(t, err)
				require.True(t, status.Ended, "the fifth time in a row is the last")
				require.Contains(t, status.Error, tt.soft)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.ended, status.Ended)
			require.Contains(t, status.Error, tt.failure)
			require.Equal(t, tt.failure == "", status.Error == "")
		})
	}
}

func TestRetryAfterDelaysTheNextPoll(t *testing.T) {
	url := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	status, err := poll(t, external.Options{Networks: loopback}, url, "", 0)
	require.Error(t, err)
	require.Equal(t, 7*time.Second, status.Again)
}

func TestOnlyAllowedNetworksAreCalled(t *testing.T) {
	called := false
	url := answering(t, func(http.ResponseWriter, *http.Request) { called = true })
	for _, o := range []external.Options{{}, {Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}} {
		status, err := poll(t, o, url, "", 0)
		require.NoError(t, err)
		require.Contains(t, status.Error, "not allowed")
	}
	status, err := poll(t, external.Options{Networks: []netip.Prefix{netip.MustParsePrefix(
		"0.0.0.0/0")}}, "http://169.254.169.254/token", "", 0)
	require.NoError(t, err)
	require.Contains(t, status.Error, "not allowed")
	require.False(t, called)
}

func TestARedirectToAnotherHostIsNotFollowed(t *testing.T) {
	var headers []string
	target := answering(t, func(w http.ResponseWriter, r *http.Request) {
		headers = append(headers, r.Header.Get("X-Token"))
		fmt.Fprint(w, `{"status": "success"}`)
	})
	elsewhere := answering(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) })
	status, err := poll(t, external.Options{Networks: loopback}, elsewhere, `, "headers": {"X-Token": "t"}`, 0)
	require.NoError(t, err)
	require.Contains(t, status.Error, "redirect to another host")
	require.Empty(t, headers)

	here := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there" {
			http.Redirect(w, r, "/there", http.StatusFound)
			return
		}
		fmt.Fprint(w, `{"status": "success"}`)
	})
	status, err = poll(t, external.Options{Networks: loopback}, here, "", 0)
	require.NoError(t, err)
	require.True(t, status.Ended)
}

func TestASecretIsReadAtEachCall(t *testing.T) {
	url := answering(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"status": %q}`, r.Header.Get("Authorization"))
	})
	secret := func(name string) (string, error) {
		if name == "api" {
			return "success", nil
		}
		return "", errors.New("there is no such secret")
	}
	o := external.Options{Networks: loopback, Secret: secret}
	status, err := poll(t, o, url, `, "headers": {"Authorization": {"secret": "api"}}`, 0)
	require.NoError(t, err)
	require.Equal(t, []any{true, ""}, []any{status.Ended, status.Error})
	status, err = poll(t, o, url, `, "headers": {"Authorization": {"secret": "other"}}`, 0)
	require.NoError(t, err)
	require.Contains(t, status.Error, "no such secret")
}

func TestASecretThatAnAnswerRepeatsIsHidden(t *testing.T) {
	status := 401
	url := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error": "not %s", "status": %q}`, r.Header.Get("Authorization"), r.Header.Get("Authorization"))
	})
	o := external.Options{Networks: loopback, Secret: func(string) (string, error) { return "hunter2-and-more", nil }}
	const header = `, "headers": {"Authorization": {"secret": "api", "prefix": "Bearer "}}`
	told, err := poll(t, o, url, header, 0)
	require.NoError(t, err)
	require.Equal(t, "HTTP request failed with status 401: not Bearer ***", told.Error)
	status = 503
	_, err = poll(t, o, url, header, 0)
	require.EqualError(t, err, "HTTP request failed with status 503: not Bearer ***")
	told, err = poll(t, o, url, header, 4)
	require.NoError(t, err)
	require.NotContains(t, told.Error, "hunter2")
	status = 200
	told, err = poll(t, o, url, header+`, "failure_value": "Bearer hunter2-and-more"`, 0)
	require.NoError(t, err)
	require.Equal(t, "Job failed with status: Bearer ***", told.Error)
}

func TestMockJobsNeedPermission(t *testing.T) {
	status, err := poll(t, external.Options{}, "mock://success", "", 0)
	require.NoError(t, err)
	require.Contains(t, status.Error, "--allow-mock")
	for url, want := range map[string]flow.ExternalStatus{"mock://success/1": {Ended: true},
		"mock://failed": {Ended: true, Error: "Mock job failed"}, "mock://x": {}} {
		status, err := poll(t, external.Options{Mock: true}, url, "", 0)
		require.NoError(t, err)
		require.Equal(t, want, status)
	}
}

func TestAHostsClockEndsNoJob(t *testing.T) {
	url := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	for now, given := range map[int64]bool{700_000: false, 700_001: true} { // the store's time
		h := external.NewHTTP(external.Options{Networks: loopback, Now: func() int64 { return now }})
		status, err := h.Poll(t.Context(), flow.External{Service: external.CustomHTTP, ID: "j",
			Data: json.RawMessage(fmt.Sprintf(`{"url": %q}`, url)), Failures: 1, FailingAt: 100_000})
		require.Equal(t, given, status.Ended, now)
		require.Equal(t, !given, err != nil, now)
	}
}

func TestRetryAfterIsBoundedToAnHour(t *testing.T) {
	for _, seconds := range []string{"3600", "3601", "10000000000", "18446744074", "9223372036854775807"} {
		url := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", seconds)
			fmt.Fprint(w, `{"status": "running"}`)
		})
		status, err := poll(t, external.Options{Networks: loopback}, url, "", 0)
		require.NoError(t, err)
		require.Equal(t, time.Hour, status.Again, seconds)
	}
}
