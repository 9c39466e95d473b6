package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// ourMark is the application id in the head of our files: "Trpe". It is written before anything else, and not by way
// of the log, so a file without it was never a store.
const ourMark = 0x54727065

// Of the head of a SQLite file: how it begins, and where its application id is.
const (
	magic    = "SQLite format 3\x00"
	markAt   = 68
	headSize = 100
)

// checkOwn refuses a file that somebody else has made, before anything beside it or in it is touched.
func checkOwn(ctx context.Context, path string) error {
	head, err := readHead(path)
	switch {
	case err != nil:
		return err
	case len(head) == 0:
		return nil // it is new, or empty
	case len(head) < headSize || !bytes.HasPrefix(head, []byte(magic)):
		return fmt.Errorf("%s is no SQLite database: name another file for the store", path)
	case binary.BigEndian.Uint32(head[markAt:]) == ourMark:
		return nil
	}
	what := "a log of changes beside it"
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		tables, err := tablesIn(ctx, path)
		if err != nil {
			return fmt.Errorf("%s was made by another program and cannot be read: name another file for the store: %w", path, err)
		}
		if len(tables) == 0 {
			return nil
		}
		what = "the tables " + strings.Join(tables, ", ")
	}
	return fmt.Errorf("%s is a database of another program (it has %s) and stays as it is: name another file for the store; one that does not exist is created", path, what)
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

// tablesIn names a few tables. What is opened as immutable gets no files beside it.
func tablesIn(ctx context.Context, path string) (names []string, err error) {
	db, err := openFile(path, url.Values{"mode": {"ro"}, "immutable": {"1"}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return read(ctx, db, "list tables", listing.ScanValue[string], "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name LIMIT 5")
}
