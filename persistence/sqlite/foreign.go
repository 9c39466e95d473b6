package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// ourMark is the application id "Trpe" in the header of a store's file. It is written first and not
// through the log, so a file without it was never a store.
const ourMark = 0x54727065

// Parts of the header of a SQLite file: its beginning, the offset of the application id, and its
// length.
const (
	magic    = "SQLite format 3\x00"
	markAt   = 68
	headSize = 100
)

// checkOwn returns an error for a file of another program, before any file changes.
func checkOwn(ctx context.Context, path string) error {
	head, err := readHead(path)
	switch {
	case err != nil:
		return err
	case len(head) == 0:
		return nil // the file is new or empty
	case len(head) < headSize || !bytes.HasPrefix(head, []byte(magic)):
		return fmt.Errorf("%s is no SQLite database: name another file for the store", path)
	case binary.BigEndian.Uint32(head[markAt:]) == ourMark:
		return nil
	}
	what, todo := "a log of changes beside it", "name another file for the store; one that does not exist is created"
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		tables, err := tablesIn(ctx, path)
		if err != nil {
			return fmt.Errorf("%s was made by another program and cannot be read: name another file for the store: %w", path, err)
		}
		if len(tables) == 0 {
			return nil
		}
		what = "the tables " + strings.Join(tables[:min(len(tables), fewTables)], ", ")
		if isScheduler(tables) {
			todo += `. It looks like a PocketFlow scheduler's: "troupe import pocketflow ` + path + `" takes its flows and tasks over`
		}
	}
	return fmt.Errorf("%s is a database of another program (it has %s) and stays as it is: %s", path, what, todo)
}

const fewTables = 5

// isScheduler reports whether the tables are those of a PocketFlow scheduler.
func isScheduler(tables []string) bool {
	return !slices.ContainsFunc([]string{"flow_versions", "flows", "node_runs", "tasks"},
		func(name string) bool { return !slices.Contains(tables, name) })
}

func readHead(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	head := make([]byte, headSize)
	n, err := io.ReadFull(file, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], errors.Join(err, file.Close())
}

// OpenForeign opens the database of another program read-only, without changing any file. It
// refuses a database that is in use or was not closed, because other files have a part of its
// content.
func OpenForeign(path string) (*sql.DB, error) {
	if err := checkKind(path); err != nil {
		return nil, err
	}
	path, err := realPath(path)
	if err != nil {
		return nil, err
	}
	head, err := readHead(path)
	switch {
	case err != nil:
		return nil, err
	case !bytes.HasPrefix(head, []byte(magic)):
		return nil, fmt.Errorf("%s is not there, or is no SQLite database", path)
	}
	for _, beside := range []string{"-wal", "-journal"} {
		if info, err := os.Stat(path + beside); err == nil && info.Size() > 0 {
			return nil, fmt.Errorf(`%s is in use, or was not closed: there are changes of it in `+
				`%s%s. End the program that has it; if it has ended, run: sqlite3 %s "PRAGMA `+
				`wal_checkpoint(TRUNCATE)"`,
				path, path, beside, path)
		}
	}
	return openUnchanged(path)
}

// openUnchanged opens a file as immutable, so that SQLite creates no files beside it.
func openUnchanged(path string) (*sql.DB, error) {
	return openFile(path, url.Values{"mode": {"ro"}, "immutable": {"1"}})
}

// tablesIn returns the names of the tables.
func tablesIn(ctx context.Context, path string) (names []string, err error) {
	db, err := openUnchanged(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return readRows(ctx, db, "list tables", listing.ScanValue[string],
		"SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' "+
			"ESCAPE '~' ORDER BY name LIMIT 100")
}
