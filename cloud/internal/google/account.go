// Package google calls the APIs of Google Cloud with the account of this process: its application
// default credentials.
//
// Promises: credentials are searched at the first use, and again as long as there are none. A token
// is used until shortly before its expiry, and dropped if an API rejects it, so replaced
// credentials take effect.
package google

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
)

const scope = "https://www.googleapis.com/auth/cloud-platform"

// Account is a transport that adds a token to requests.
type Account struct {
	base http.RoundTripper

	mu       sync.Mutex
	source   oauth2.TokenSource // nil if credentials have to be searched
	failure  error              // error of the last search
	failedAt time.Time
}

// Time limits for a token and for a call, and the time for which missing credentials are cached.
// Where no metadata server answers, a search takes seconds.
const (
	tokenStays = 20 * time.Second
	callStays  = 60 * time.Second
	failureTTL = 10 * time.Second
)

// NewAccount returns the account of this process.
func NewAccount() *Account {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 50
	return &Account{base: base}
}

// Client returns a client that calls APIs with the account.
func (a *Account) Client() *http.Client { return &http.Client{Transport: a, Timeout: callStays} }

// Options returns the options of API clients; an endpoint "" means the default.
func Options(client *http.Client, endpoint string) []option.ClientOption {
	all := []option.ClientOption{option.WithHTTPClient(client)}
	if endpoint != "" {
		all = append(all, option.WithEndpoint(endpoint))
	}
	return all
}

// CredentialsError is the reason for a missing token.
type CredentialsError struct{ err error }

func (e *CredentialsError) Error() string {
	return fmt.Sprintf("no credentials for Google Cloud: %v", e.err)
}

func (e *CredentialsError) Unwrap() error { return e.err }

// RoundTrip sends a request with a token, and retries once with a new token if the first one is
// rejected.
func (a *Account) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, token, err := a.sendAuthorized(r, r.Body)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	a.dropToken(token)
	body, err := reopenBody(r)
	if err != nil {
		return resp, nil // the body cannot be sent twice
	}
	// so that the connection can be reused
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close()
	resp, _, err = a.sendAuthorized(r, body)
	return resp, err
}

func reopenBody(r *http.Request) (io.ReadCloser, error) {
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return r.Body, nil
	case r.GetBody == nil:
		return nil, errors.New("it is gone")
	}
	return r.GetBody()
}

func (a *Account) sendAuthorized(r *http.Request, body io.ReadCloser) (*http.Response, *oauth2.Token, error) {
	token, err := a.validToken()
	if err != nil {
		if body != nil {
			body.Close()
		}
		return nil, nil, &CredentialsError{err}
	}
	r = r.Clone(r.Context())
	r.Body = body
	token.SetAuthHeader(r)
	resp, err := a.base.RoundTrip(r)
	return resp, token, err
}

// validToken returns a token that is valid for a while.
func (a *Account) validToken() (*oauth2.Token, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.source == nil {
		if a.failure != nil && time.Since(a.failedAt) < failureTTL {
			return nil, a.failure
		}
		ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Transport: a.base, Timeout: tokenStays})
		found, err := google.FindDefaultCredentials(ctx, scope)
		if a.failure, a.failedAt = err, time.Now(); err != nil {
			return nil, err
		}
		a.source = found.TokenSource
	}
	return a.source.Token()
}

// dropToken causes a new search for credentials, unless a concurrent call has already done so.
func (a *Account) dropToken(token *oauth2.Token) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.source == nil {
		return
	}
	if now, err := a.source.Token(); err == nil && now.AccessToken == token.AccessToken {
		a.source = nil
	}
}
