package sqlite

import (
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/troupe-engine/troupe/persistence"
)

// reasons maps a SQLite error code to the reason why the file is unavailable.
var reasons = map[int]string{
	sqlite3.SQLITE_FULL:     "its disk is full",
	sqlite3.SQLITE_IOERR:    "its disk reports an error",
	sqlite3.SQLITE_READONLY: "its file or disk is read-only",
	sqlite3.SQLITE_CANTOPEN: "its file cannot be opened",
	sqlite3.SQLITE_BUSY:     "another program has its file locked",
	sqlite3.SQLITE_NOMEM:    "the member has no memory left",
}

// wrapError adds the attempted operation to err. It marks refused values as ErrRefused, and an
// unusable file as an Outage.
func wrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	if e := new(driver.Error); errors.As(err, &e) {
		code := e.Code() & 0xff // without the bits of an extended code
		if code == sqlite3.SQLITE_TOOBIG {
			return fmt.Errorf("%s: %w: %w", what, persistence.ErrRefused, err)
		}
		if reason := reasons[code]; reason != "" {
			return fmt.Errorf("%s: %w", what, &persistence.Outage{Reason: reason, Err: err})
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}
