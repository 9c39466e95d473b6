package postgres

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// unnamed is shown for a DSN with a password that cannot be separated from the rest.
const unnamed = "postgres://…"

// Name returns the user, server and database of a DSN or URL, which may be shown. It is built from
// the parsed DSN, so it never contains the password.
func Name(dsn string) string {
	config, err := parseDSN(dsn)
	if err != nil {
		return unnamed
	}
	c := config.ConnConfig
	name := url.URL{Scheme: "postgres", User: url.User(c.User), Path: "/" + c.Database}
	if strings.HasPrefix(c.Host, "/") { // the host is the folder of a Unix socket
		name.RawQuery = url.Values{"host": {c.Host}}.Encode()
	} else {
		name.Host = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	}
	return name.String()
}

var errUnreadable = errors.New("the setting cannot be read as postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE: " +
	"write what is special in a password as %40 (@), %2F (/), %3A (:), %3F (?), %23 (#) or %25 (%)")

// parseDSN parses a DSN or URL. It returns only the end of the driver's errors, because their
// beginning contains the DSN, and only for an unambiguous URL.
func parseDSN(dsn string) (*pgxpool.Config, error) {
	if isAmbiguous(dsn) {
		return nil, errUnreadable
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err == nil {
		configureTimeouts(config)
		return config, nil
	}
	if _, why, ok := strings.Cut(err.Error(), "`: "); ok && strings.Contains(dsn, "://") {
		return nil, fmt.Errorf("%w: %s", errUnreadable, why)
	}
	return nil, errUnreadable
}

// isAmbiguous reports whether a part of a URL's password may have been parsed as another part of
// the URL.
func isAmbiguous(dsn string) bool {
	if !strings.Contains(dsn, "://") {
		return false
	}
	u, err := url.Parse(dsn)
	before, _, _ := strings.Cut(dsn, "?")
	return err != nil || u.Fragment != "" || u.User == nil && strings.Contains(dsn, "@") || strings.Count(before, "@") > 1
}
