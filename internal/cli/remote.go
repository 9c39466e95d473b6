package cli

import (
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

// remoteFlags selects the server for flow and task commands.
type remoteFlags struct {
	Server string `env:"TROUPE_SERVER,SCHEDULER_BASE" default:"http://127.0.0.1:8070" placeholder:"URL" help:"The server (${default}). Several members of a cluster with commas between them: the next one is asked when one cannot be reached."`
	Token  string `env:"TROUPE_TOKEN" help:"Bearer token for the server."`
	trustFlags
	outputFlag

	by string // sender of commands
}

// serverURLs returns the addresses of the servers. SCHEDULER_BASE ends with /api, the prefix of the
// routes it was meant for; the suffix is removed.
func (r *remoteFlags) serverURLs() []string {
	servers := strings.Split(r.Server, ",")
	for i, server := range servers {
		servers[i] = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(server), "/"), "/api")
	}
	return servers
}

// newClient returns a client of the servers.
func (r *remoteFlags) newClient() (*client.Client, error) {
	// A user waits for the answer: a missing server has to be reported within a second.
	c, err := client.New(strings.Join(r.serverURLs(), ","), client.Options{Token: r.Token, By: r.by, Retries: 3, Trust: r.clientTrust()})
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// pageSize is the largest page that servers return.
const pageSize = 500

// readAll reads a list up to a limit; 0 = all of it.
func readAll[T any](limit int, read func(client.Paging) (*wire.Page[T], error)) ([]T, error) {
	size := pageSize
	if limit > 0 {
		size = min(limit, pageSize)
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

// subjectError is an error about one of several objects.
type subjectError struct {
	subject string
	error
}

func (a subjectError) Unwrap() error { return a.error }

// explainError returns an error's text with advice for the user.
func explainError(err error) string {
	if a := (subjectError{}); errors.As(err, &a) {
		return a.subject + ": " + explainError(a.error)
	}
	var refused *client.Error
	var unreached *url.Error
	var dial *net.OpError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return sanitizeText(orElse(refused.What, refused.Title)) + "\nhint: " + tokenHint
	case errors.Is(err, worker.ErrDenied):
		return err.Error() + "\nhint: " + tokenHint
	case errors.As(err, &refused):
		return explainRefusal(refused)
	case errors.As(err, &unreached) && errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Sprintf("no server answers at %s (%v)\nhint: start one with troupe serve, or "+
			"name another with --server or TROUPE_SERVER", urlOrigin(unreached.URL), dial.Err)
	case errors.As(err, &unreached):
		return explainDistrust(err, urlOrigin(unreached.URL))
	}
	return err.Error()
}

const tokenHint = "name one that the server was started with, or that an admin has made, by --token or TROUPE_TOKEN"

// urlOrigin returns the scheme and the host of an address.
func urlOrigin(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Scheme + "://" + u.Host
	}
	return address
}

func explainRefusal(e *client.Error) string {
	var b strings.Builder
	b.WriteString(sanitizeText(orElse(e.What, e.Title)))
	if e.Where != "" && !strings.HasPrefix(e.Where, "path.") {
		fmt.Fprintf(&b, " (%s)", sanitizeText(e.Where))
	}
	for i, f := range e.Faults {
		switch {
		case strings.HasPrefix(f.Where, "$"):
			fmt.Fprintf(&b, "\n  %s", sanitizeText(f.Where+": "+f.What))
		case i > 0: // the first one is the problem itself
			fmt.Fprintf(&b, "\n  %s", sanitizeText(f.What+withPrefix(" in ", f.Where)))
		}
	}
	b.WriteString(withPrefix("\nhint: ", sanitizeText(e.Hint)))
	return b.String()
}
