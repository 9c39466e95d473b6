package sqlite

import (
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/troupe-engine/troupe/persistence"
)

// wrap says what was attempted, and whether it was the value that was refused or the file that cannot be used.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	if e := new(driver.Error); errors.As(err, &e) {
		switch e.Code() & 0xff { // without the details of an extended code
		case sqlite3.SQLITE_TOOBIG:
			return fmt.Errorf("%s: %w: %w", what, persistence.ErrRefused, err)
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_NOMEM:
			return fmt.Errorf("%s: %w: %w", what, persistence.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}
