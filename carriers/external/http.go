package external

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/carriers/internal/reach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/redact"
)

// CustomHTTP is the name of the service that HTTP implements.
const CustomHTTP = "custom_http"

// Options configure an HTTP.
type Options struct {
	Networks []netip.Prefix // allowed networks
	Mock     bool           // allow mock:// URLs, for tests
	// Secret returns the value of a secret by its name; nil if there are none.
	Secret func(name string) (string, error)
	TLS    func() *tls.Config // nil means that the system's certificates are trusted
	Now    func() int64       // time in Unix milliseconds; nil means this host's clock
}

// HTTP polls jobs of the service custom_http. Each job names a URL whose response contains its
// status.
type HTTP struct {
	opts   Options
	client *http.Client
}

// NewHTTP returns an HTTP.
func NewHTTP(o Options) *HTTP {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	h := &HTTP{opts: o}
	dialer := reach.Networks{Allow: o.Networks}.Dialer("jobs outside")
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 50, IdleConnTimeout: 30 * time.Second,
		TLSHandshakeTimeout: 5 * time.Second, MaxResponseHeaderBytes: 64 << 10}
	if o.TLS != nil {
		transport.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&tls.Dialer{NetDialer: dialer, Config: o.TLS()}).DialContext(ctx, network, addr)
		}
	}
	h.client = &http.Client{Transport: transport, CheckRedirect: sameHost}
	return h
}

// maxRedirects bounds the redirects of one call.
const maxRedirects = 5

// errOtherHost fails a job, because its headers must not go to another host.
var errOtherHost = errors.New("the answer is a redirect to another host, which is not followed")

func sameHost(next *http.Request, before []*http.Request) error {
	switch last := before[len(before)-1].URL; {
	case next.URL.Host != last.Host || next.URL.Scheme != last.Scheme:
		return errOtherHost
	case len(before) > maxRedirects:
		return errors.New("too many redirects")
	}
	return nil
}

// maxFailures bounds the consecutive failed polls of a job, and maxFailing their duration.
const (
	maxFailures = 5
	maxFailing  = 10 * time.Minute
)

// Poll polls a job.
func (h *HTTP) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	j, err := h.decodeJob(x)
	if err != nil {
		return failedStatus(err.Error()), nil
	}
	if j.isMock() {
		return j.mockStatus(), nil
	}
	status, err := h.requestStatus(ctx, j)
	var fatal *fatalError
	switch {
	case errors.As(err, &fatal):
		return failedStatus(fatal.Error()), nil
	case err != nil && h.isLastTry(x):
		return failedStatus(fmt.Sprintf("given up after %d attempts to look at it: %v", x.Failures+1, err)), nil
	}
	return status, err
}

// isLastTry reports whether the next failure ends the job.
func (h *HTTP) isLastTry(x flow.External) bool {
	return x.Failures+1 >= maxFailures || x.FailingAt > 0 && h.opts.Now()-x.FailingAt > maxFailing.Milliseconds()
}

func failedStatus(text string) flow.ExternalStatus {
	return flow.ExternalStatus{Ended: true, Error: text}
}

// Cancel does nothing, because such jobs have no URL for it.
func (h *HTTP) Cancel(context.Context, flow.External) error { return nil }

// fatalError is an error that a retry cannot fix.
type fatalError struct{ text string }

func (e *fatalError) Error() string { return e.text }

// maxAnswer bounds a response in bytes.
const maxAnswer = 1 << 20

// requestStatus calls the URL of a job and returns the status in the response.
func (h *HTTP) requestStatus(ctx context.Context, j *httpJob) (flow.ExternalStatus, error) {
	req, err := http.NewRequestWithContext(ctx, j.Method, j.URL, nil)
	if err != nil {
		return failedStatus("the url of the job cannot be called"), nil
	}
	hide, err := h.fillHeader(req.Header, j)
	if err != nil {
		return failedStatus(err.Error()), nil
	}
	status, err := h.sendRequest(req, j)
	status.Error = hide.Text(status.Error)
	if fatal := (*fatalError)(nil); err != nil && !errors.As(err, &fatal) {
		err = errors.New(hide.Text(err.Error()))
	}
	return status, err
}

func (h *HTTP) sendRequest(req *http.Request, j *httpJob) (flow.ExternalStatus, error) {
	resp, err := h.client.Do(req)
	if err != nil {
		return flow.ExternalStatus{}, classifyError(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return flow.ExternalStatus{}, withoutURL(err)
	case len(body) > maxAnswer:
		return flow.ExternalStatus{}, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	return j.readStatus(resp, body)
}

// classifyError converts permanent errors to fatalError.
func classifyError(err error) error {
	switch {
	case errors.Is(err, errOtherHost):
		return &fatalError{errOtherHost.Error()}
	case errors.Is(err, reach.ErrNotAllowed):
		return &fatalError{fmt.Sprintf("%v; the operator can allow it with --poll-network", withoutURL(err))}
	}
	return withoutURL(err)
}

// withoutURL returns an error without the URL, whose query may contain a token.
func withoutURL(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// fillHeader adds the headers of the job. hide removes their secrets from response texts.
func (h *HTTP) fillHeader(to http.Header, j *httpJob) (hide *redact.Redactor, err error) {
	to.Set("Accept", "application/json")
	var secrets []string
	for name, v := range j.Headers {
		value, secret, err := h.headerValue(v)
		if err != nil {
			return nil, fmt.Errorf("the header %.80q: %w", name, err)
		}
		if !isHeaderToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("the header %.80q is none that can be sent", name)
		}
		to.Set(name, value)
		secrets = append(secrets, secret)
	}
	return redact.New(secrets...), nil
}

func isHeaderToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// headerValue returns the value of a header: a text, or the secret in {"secret": NAME} after an
// optional prefix. secret is the part to hide.
func (h *HTTP) headerValue(v json.RawMessage) (value, secret string, err error) {
	if json.Unmarshal(v, &value) == nil {
		return value, "", nil
	}
	var ref struct {
		Secret string `json:"secret"`
		Prefix string `json:"prefix"`
	}
	if json.Unmarshal(v, &ref) != nil || ref.Secret == "" {
		return "", "", errors.New(`its value is neither a text nor {"secret": NAME}`)
	}
	if h.opts.Secret == nil {
		return "", "", fmt.Errorf("this server has no secrets: %.80q is not known", ref.Secret)
	}
	secret, err = h.opts.Secret(ref.Secret)
	return ref.Prefix + secret, secret, err
}

// retryAfter returns the pause in the Retry-After header.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		// bounded before the multiplication
		return time.Duration(min(max(seconds, 0), int(time.Hour/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), time.Hour)
	}
	return 0
}

// isTransientStatus reports whether a retry may return another status.
func isTransientStatus(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// readStatus reads the status of a job from a response.
func (j *httpJob) readStatus(resp *http.Response, body []byte) (flow.ExternalStatus, error) {
	if !j.isSuccessStatus(resp.StatusCode) {
		text := fmt.Sprintf("HTTP request failed with status %d: %s", resp.StatusCode, errorIn(body))
		if isTransientStatus(resp.StatusCode) {
			return flow.ExternalStatus{Again: retryAfter(resp.Header)}, errors.New(text)
		}
		return failedStatus(text), nil
	}
	value, err := fieldText(body, j.StatusField)
	switch {
	case err != nil:
		return flow.ExternalStatus{}, err
	case value == j.SuccessValue:
		return flow.ExternalStatus{Ended: true}, nil
	case j.FailureValue != "" && value == j.FailureValue:
		return failedStatus("Job failed with status: " + value), nil
	}
	return flow.ExternalStatus{Again: retryAfter(resp.Header)}, nil
}

func (j *httpJob) isSuccessStatus(status int) bool {
	if len(j.SuccessCodes) > 0 {
		return slices.Contains(j.SuccessCodes, status)
	}
	return status >= 200 && status < 300
}

// errorIn returns the error text of a response.
func errorIn(body []byte) string {
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error == nil {
		return "Unknown error"
	}
	var text string
	if json.Unmarshal(answer.Error, &text) != nil {
		text = string(answer.Error)
	}
	return cmp.Or(text, "Unknown error")
}

// fieldText returns the text in a field of a response. path may be nested, as in a.b.c.
func fieldText(body []byte, path string) (string, error) {
	value := json.RawMessage(body)
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(value, &object) != nil {
			return "", fmt.Errorf("the answer is no JSON object with the field %.80q", path)
		}
		value = object[name]
	}
	var text string
	if value == nil || json.Unmarshal(value, &text) != nil {
		return "", fmt.Errorf("the answer has no text in the field %.80q", path)
	}
	return text, nil
}
