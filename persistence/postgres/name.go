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

// unnamed stands for a DSN in which nobody can tell the password from the rest.
const unnamed = "postgres://…"

// Name is what may be shown of a DSN or URL: which database of which server, for whom. It is made
// of what the DSN was understood to mean, so there is no spelling of a password that it could hold.
func Name(dsn string) string {
	config, err := parseDSN(dsn)
	if err != nil {
		return unnamed
	}
	c := config.ConnConfig
	name := url.URL{Scheme: "postgres", User: url.User(c.User), Path: "/" + c.Database}
	if strings.HasPrefix(c.Host, "/") { // the folder of a socket
		name.RawQuery = url.Values{"host": {c.Host}}.Encode()
	} else {
		name.Host = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	}
	return name.String()
}

var errUnreadable = errors.New("the setting cannot be read as postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE: " +
	"write what is special in a password as %40 (@), %2F (/), %3A (:), %3F (?), %23 (#) or %25 (%)")

// parseDSN reads a DSN or URL. The driver's errors begin with the DSN, so only their end is told,
// and only of a URL that was taken apart where it was meant to be.
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

// isAmbiguous is a URL whose password may have been taken for another part of it.
func isAmbiguous(dsn string) bool {
	if !strings.Contains(dsn, "://") {
		return false
	}
	u, err := url.Parse(dsn)
	before, _, _ := strings.Cut(dsn, "?")
	return err != nil || u.Fragment != "" || u.User == nil && strings.Contains(dsn, "@") || strings.Count(before, "@") > 1
}
