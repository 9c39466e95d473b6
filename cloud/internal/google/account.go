// Package google reaches the APIs of Google Cloud as the account that this process has there: its
// application default credentials.
//
// Promises: they are looked for when they are first needed, and again as long as there are none; a
// token is used until shortly before its end, and given up when an API does not take it, so
// credentials that were replaced are found.
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

// Account gives requests its token. It is a transport.
type Account struct {
	base http.RoundTripper

	mu       sync.Mutex
	source   oauth2.TokenSource // nil = they have to be looked for
	failure  error              // of the last time
	failedAt time.Time
}

// How long a token may take, a call may take, and for how long it is believed that there are no
// credentials: where nobody answers it takes seconds to find that out.
const (
	tokenStays = 20 * time.Second
	callStays  = 60 * time.Second
	failureTTL = 10 * time.Second
)

// NewAccount is the account of this process.
func NewAccount() *Account {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 50
	return &Account{base: base}
}

// Client calls APIs as the account.
func (a *Account) Client() *http.Client { return &http.Client{Transport: a, Timeout: callStays} }

// Options are those of the clients of APIs; an endpoint "" is where the API always is.
func Options(client *http.Client, endpoint string) []option.ClientOption {
	all := []option.ClientOption{option.WithHTTPClient(client)}
	if endpoint != "" {
		all = append(all, option.WithEndpoint(endpoint))
	}
	return all
}

// CredentialsError says why there is no token.
type CredentialsError struct{ err error }

func (e *CredentialsError) Error() string {
	return fmt.Sprintf("no credentials for Google Cloud: %v", e.err)
}

func (e *CredentialsError) Unwrap() error { return e.err }

// RoundTrip sends a request with a token, once more if the first one is not taken.
func (a *Account) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, token, err := a.sendAuthorized(r, r.Body)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	a.dropToken(token)
	body, err := reopenBody(r)
	if err != nil {
		return resp, nil // it cannot be sent twice
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
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

// validToken is one that is good for a while yet.
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

// dropToken has credentials looked for anew, unless somebody else has done so meanwhile.
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
