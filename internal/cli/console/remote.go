package console

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

// RemoteFlags selects the server for flow and task commands.
type RemoteFlags struct {
	Server string `env:"TROUPE_SERVER,SCHEDULER_BASE" default:"http://127.0.0.1:8070" placeholder:"URL" help:"Server URL (${default}). Separate several members with commas: if one cannot be reached, the next one is used."`
	Token  string `env:"TROUPE_TOKEN" help:"Bearer token for the server."`
	TrustFlags
	OutputFlag

	Sender string `kong:"-"` // sender of commands
}

// ServerURLs returns the addresses of the servers. SCHEDULER_BASE ends with /api, the prefix of the
// routes it was meant for; the suffix is removed.
func (r *RemoteFlags) ServerURLs() []string {
	servers := strings.Split(r.Server, ",")
	for i, server := range servers {
		servers[i] = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(server), "/"), "/api")
	}
	return servers
}

// NewClient returns a client of the servers.
func (r *RemoteFlags) NewClient() (*client.Client, error) {
	// A user waits for the answer: a missing server has to be reported within a second.
	c, err := client.New(strings.Join(r.ServerURLs(), ","), client.Options{Token: r.Token, By: r.Sender,
		Retries: 3, Trust: r.ClientTrust()})
	if err != nil {
		return nil, UsageError{err}
	}
	return c, nil
}

// PageSize is the largest page that servers return.
const PageSize = 500

// ReadAll reads a list up to a limit; limit 0 means the whole list.
func ReadAll[T any](limit int, read func(client.Paging) (*wire.Page[T], error)) ([]T, error) {
	size := PageSize
	if limit > 0 {
		size = min(limit, PageSize)
	}
	all := []T{}
	for item, err := range client.All(func(cursor string) (*wire.Page[T], error) {
		return read(client.Paging{Cursor: cursor, Limit: size})
	}) {
		if err != nil {
			return nil, err
		}
		if all = append(all, item); len(all) == limit {
			break
		}
	}
	return all, nil
}

// SubjectError is an error about one of several objects.
type SubjectError struct {
	Subject string
	Err     error
}

func (a SubjectError) Error() string { return a.Err.Error() }

func (a SubjectError) Unwrap() error { return a.Err }

// ExplainError returns an error's text with advice for the user.
func ExplainError(err error) string {
	if a := (SubjectError{}); errors.As(err, &a) {
		return a.Subject + ": " + ExplainError(a.Err)
	}
	var refused *client.Error
	var unreached *url.Error
	var dial *net.OpError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return SanitizeText(cmp.Or(refused.Message, refused.Title)) + "\nhint: " + tokenHint
	case errors.Is(err, worker.ErrDenied):
		return err.Error() + "\nhint: " + tokenHint
	case errors.As(err, &refused):
		return ExplainRefusal(refused)
	case errors.As(err, &unreached) && errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Sprintf("no server answers at %s (%v)\nhint: start one with troupe serve, or "+
			"set --server or TROUPE_SERVER", urlOrigin(unreached.URL), dial.Err)
	case errors.As(err, &unreached):
		return explainDistrust(err, urlOrigin(unreached.URL))
	}
	return err.Error()
}

const tokenHint = "set --token or TROUPE_TOKEN to a token of the server"

// urlOrigin returns the scheme and the host of an address.
func urlOrigin(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Scheme + "://" + u.Host
	}
	return address
}

// ExplainRefusal returns the text of a problem, with its faults and its advice.
func ExplainRefusal(e *client.Error) string {
	var b strings.Builder
	b.WriteString(SanitizeText(cmp.Or(e.Message, e.Title)))
	if e.Field != "" && !strings.HasPrefix(e.Field, "path.") {
		fmt.Fprintf(&b, " (%s)", SanitizeText(e.Field))
	}
	for i, f := range e.Errors {
		switch {
		case strings.HasPrefix(f.Field, "$"):
			fmt.Fprintf(&b, "\n  %s", SanitizeText(f.Field+": "+f.Message))
		case i > 0: // the first one is the problem itself
			fmt.Fprintf(&b, "\n  %s", SanitizeText(f.Message+AddPrefix(" in ", f.Field)))
		}
	}
	b.WriteString(AddPrefix("\nhint: ", SanitizeText(e.Hint)))
	return b.String()
}
