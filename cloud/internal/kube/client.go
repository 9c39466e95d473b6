package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// kubeClient calls an API server.
type kubeClient struct {
	clusterAccess
	http *http.Client
}

// apiError is an error answer.
type apiError struct {
	code       int
	reason     string // machine-readable word
	text       string
	retryAfter time.Duration
}

func (e *apiError) Error() string { return fmt.Sprintf("Kubernetes answers %d: %s", e.code, e.text) }

// codeOf returns the HTTP status of an API error; 0 if there was no answer.
func codeOf(err error) int {
	var answer *apiError
	if errors.As(err, &answer) {
		return answer.code
	}
	return 0
}

// isTransient reports whether a retry may help.
func isTransient(err error) bool {
	code := codeOf(err)
	return code == 0 || code == http.StatusTooManyRequests || code >= 500
}

func retryAfter(err error) time.Duration {
	var answer *apiError
	if errors.As(err, &answer) {
		return answer.retryAfter
	}
	return 0
}

// sendRequest sends a request. It retries once if the token was rejected and a new one may be
// available. The caller has to close the answer.
func (c *kubeClient) sendRequest(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var sent []byte
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = text
	}
	at := c.server + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	resp, token, err := c.sendOnce(ctx, method, at, sent)
	if err == nil && resp.StatusCode == http.StatusUnauthorized && c.login.dropToken(token) {
		resp.Body.Close()
		resp, _, err = c.sendOnce(ctx, method, at, sent)
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, responseError(resp)
	}
	return resp, nil
}

func (c *kubeClient) sendOnce(ctx context.Context, method, at string, body []byte) (resp *http.Response, token string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Accept", "application/json, */*")
	req.Header.Set("Content-Type", "application/json")
	if token, err = c.bearerToken(ctx); err != nil {
		return nil, "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err = c.http.Do(req)
	if err != nil {
		return nil, "", hideURL(err)
	}
	return resp, token, nil
}

func (c *kubeClient) bearerToken(ctx context.Context) (string, error) {
	switch {
	case c.login != nil:
		return c.login.bearerToken(ctx)
	case c.tokenFile == "":
		return c.token, nil
	}
	text, err := os.ReadFile(c.tokenFile)
	if err != nil {
		return "", fmt.Errorf("the token for Kubernetes: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// hideURL returns an error without the URL.
func hideURL(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return fmt.Errorf("the API server of Kubernetes: %w", e.Err)
	}
	return err
}

const maxText = 1000

func responseError(resp *http.Response) error {
	e := &apiError{code: resp.StatusCode}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // report as much as can be read
	var s apiStatus
	if json.Unmarshal(text, &s) == nil && s.Message != "" {
		e.text, e.reason = s.Message, s.Reason
	} else {
		e.text = strings.TrimSpace(string(text))
	}
	if len(e.text) > maxText {
		e.text = strings.ToValidUTF8(e.text[:maxText], "") + "…"
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	e.retryAfter = min(max(time.Duration(seconds)*time.Second, 0), time.Hour)
	return e
}

const maxAnswer = 64 << 20

// requestJSON sends a request and decodes the answer into v, unless that is nil.
func (c *kubeClient) requestJSON(ctx context.Context, method, path string, query url.Values, body, v any) error {
	resp, err := c.sendRequest(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if v == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(v)
}

func jobsIn(namespace string) string {
	return "/apis/batch/v1/namespaces/" + url.PathEscape(namespace) + "/jobs"
}

func podsIn(namespace string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods"
}

func (c *kubeClient) createJob(ctx context.Context, namespace string, j *kubeJob) (made kubeJob, err error) {
	err = c.requestJSON(ctx, http.MethodPost, jobsIn(namespace), nil, j, &made)
	return made, err
}

func (c *kubeClient) getJob(ctx context.Context, namespace, name string) (found kubeJob, err error) {
	err = c.requestJSON(ctx, http.MethodGet, jobsIn(namespace)+"/"+url.PathEscape(name), nil, nil, &found)
	return found, err
}

// deleteJob deletes a job with its pods. A missing job is no error.
func (c *kubeClient) deleteJob(ctx context.Context, namespace, name string) error {
	err := c.requestJSON(ctx, http.MethodDelete, jobsIn(namespace)+"/"+url.PathEscape(name),
		url.Values{"propagationPolicy": {"Background"}}, nil, nil)
	if codeOf(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// listJobs calls each with all jobs that match a label selector, page by page.
func (c *kubeClient) listJobs(ctx context.Context, namespace, selector string, each func(kubeJob)) error {
	query := url.Values{"labelSelector": {selector}, "limit": {"500"}}
	for {
		var page jobList
		if err := c.requestJSON(ctx, http.MethodGet, jobsIn(namespace), query, nil, &page); err != nil {
			return err
		}
		for _, j := range page.Items {
			each(j)
		}
		if page.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

func (c *kubeClient) listPods(ctx context.Context, namespace, selector string) ([]pod, error) {
	var all podList
	err := c.requestJSON(ctx, http.MethodGet, podsIn(namespace), url.Values{"labelSelector": {selector}}, nil, &all)
	return all.Items, err
}

// openLog opens the log of a container from its first line. With follow it continues as the log
// grows.
func (c *kubeClient) openLog(ctx context.Context, namespace, pod, container string, follow bool) (io.ReadCloser, error) {
	query := url.Values{"container": {container}}
	if follow {
		query.Set("follow", "true")
	}
	resp, err := c.sendRequest(ctx, http.MethodGet, podsIn(namespace)+"/"+url.PathEscape(pod)+"/log", query, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
