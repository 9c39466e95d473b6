// Package sqlite keeps everything in one file, for one member.
//
// Every write, heartbeats too, goes through one connection, in turn; readers have a pool of their own
// and never wait for it. What is answered is on the disk (WAL, synchronous=FULL). A lock on a file
// beside the database keeps every other process out, so what the writing connection knows of the ends of journals stays true.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/troupe-engine/troupe/persistence"
)

// Options say how a file is opened. The zero value is useful.
type Options struct {
	// Readers is how many connections read at once; 0 = 4.
	Readers int
}

type store struct {
	lane
	readers readers
	writer  *sql.DB
	lock    *os.File
}

// Open opens the file at path, wherever links lead, and creates it when it is missing. A file in use by another store is
// persistence.ErrTaken, wrapped in a text that names the file.
func Open(ctx context.Context, path string, o Options) (persistence.Store, error) {
	if o.Readers <= 0 {
		o.Readers = 4
	}
	path, err := realPath(path)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if err := checkNames(path); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if err := checkOwn(ctx, path); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	s := &store{lock: lock}
	if err := s.open(ctx, path, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *store) open(ctx context.Context, path string, o Options) error {
	// Payloads are nobody else's business; SQLite gives its other files the rights of this one.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	ours, err := file.Stat()
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if s.writer, err = connect(path, 1, fmt.Sprintf("application_id(%d)", ourMark), "journal_mode(WAL)", "synchronous(FULL)", "cache_size(-16384)", "wal_autocheckpoint(4000)"); err != nil {
		return err
	}
	if err := migrate(ctx, s.writer); err != nil {
		return err
	}
	s.readers.stmts = map[string]*sql.Stmt{}
	if s.readers.db, err = connect(path, o.Readers, "query_only(1)"); err != nil {
		return err
	}
	if s.lane, err = openLane(ctx, s.writer, path); err != nil {
		return err
	}
	s.there = func() error { return isThere(path, ours) }
	return s.fenceAll(ctx)
}

func connect(path string, size int, pragmas ...string) (*sql.DB, error) {
	db, err := openFile(path, url.Values{"_pragma": append(pragmas, fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()))})
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

func openFile(path string, how url.Values) (*sql.DB, error) {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: how.Encode()}
	return sql.Open("sqlite", name.String())
}

// isThere says whether a file is still where it was opened. SQLite would go on writing to one that was removed, and all of it would be lost when
// the process ends.
func isThere(path string, file os.FileInfo) error {
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s was removed while it was in use: move it back", persistence.ErrUnavailable, path)
	case err == nil && !os.SameFile(now, file):
		return fmt.Errorf("%w: %s was replaced by another file while it was in use: move it back", persistence.ErrUnavailable, path)
	}
	return nil
}

func (s *store) Ping(ctx context.Context) error {
	return wrap("ping the store", errors.Join(s.there(), s.readers.db.PingContext(ctx)))
}

func (s *store) Lanes() int { return 1 }

// Close waits for the write under way. The lock goes last.
func (s *store) Close() error {
	err := errors.Join(s.lane.close(), s.readers.close())
	if s.writer != nil {
		err = errors.Join(err, s.writer.Close())
	}
	if e := s.lock.Close(); !errors.Is(e, os.ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}
