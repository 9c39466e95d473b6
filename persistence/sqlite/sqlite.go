// Package sqlite implements the Store in one file, for one member.
//
// Every write, heartbeats included, goes through one connection, one at a time. Readers have their
// own pool and never wait for writes. An acknowledged write is on the disk (WAL, synchronous=FULL).
// A lock file beside the database excludes every other process, so the cached ends of journals stay
// valid.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/troupe-engine/troupe/persistence"
)

// Options configures how a file is opened. The zero value is useful.
type Options struct {
	// Readers is the number of reading connections; 0 means 4.
	Readers int
}

// store is the whole Store. Its parts share one database.
type store struct {
	*database
	approvalStore
	journalStore
	externalStore
	flowStore
	holdStore
	hookStore
	logStore
	memberStore
	permitStore
	queueStore
	scheduleStore
	statStore
	streamStore
	taskStore
	tokenStore
	viewStore
	workerStore
}

func newStore(d *database) *store {
	return &store{
		d, approvalStore{d}, journalStore{d}, externalStore{d}, flowStore{d}, holdStore{d},
		hookStore{d}, logStore{d}, memberStore{d}, permitStore{d}, queueStore{d},
		scheduleStore{d}, statStore{d}, streamStore{d}, taskStore{d}, tokenStore{d}, viewStore{d}, workerStore{d},
	}
}

// database is the open file of a store.
type database struct {
	writeLane
	readers readPool
	writer  *sql.DB
	lock    *os.File
}

// Open opens the file at path, resolving links, and creates it if it is missing. If another store
// uses the file, the error wraps persistence.ErrTaken and names the file.
func Open(ctx context.Context, path string, o Options) (persistence.Store, error) {
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if err := checkKind(path); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
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
	lock, err := takeLock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if err := checkComplete(path, lock); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), lock.Close())
	}
	s := &database{lock: lock}
	if err := s.openStore(ctx, path, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store %s: %w", path, err), s.Close())
	}
	return newStore(s), nil
}

// takeLock locks the file at a path, even if the file is removed and recreated meanwhile.
func takeLock(path string) (*os.File, error) {
	for {
		file, err := lockFile(path)
		if err != nil {
			return nil, err
		}
		ours, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if now, err := os.Stat(path); err == nil && os.SameFile(now, ours) {
			return file, nil
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
}

func (s *database) openStore(ctx context.Context, path string, o Options) error {
	// The file contains payloads, so only this user may read it. SQLite gives its other files the
	// same permissions.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	unchecked := func() error { return nil }
	if s.writer, err = openPool(path, 1, unchecked, fmt.Sprintf("application_id(%d)", ourMark),
		"journal_mode(WAL)", "synchronous(FULL)", "cache_size(-16384)",
		"wal_autocheckpoint(4000)"); err != nil {
		return err
	}
	if err := migrateSchema(ctx, s.writer); err != nil {
		return err
	}
	if s.files, err = newFiles(path, s.lock); err != nil {
		return err
	}
	s.readers.stmts = map[string]*sql.Stmt{}
	if s.readers.db, err = openPool(path, o.Readers, s.files.checkFiles, "query_only(1)"); err != nil {
		return err
	}
	if s.writeLane, err = openLane(ctx, s.writer, s.files); err != nil {
		return err
	}
	return memberStore{s}.fenceAll(ctx)
}

// openPool returns a pool of connections to an existing file. It opens no connection while check
// returns an error.
func openPool(path string, size int, check func() error, pragmas ...string) (*sql.DB, error) {
	how := url.Values{"mode": {"rw"}, "_pragma": append(pragmas, fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()))}
	opener, err := openFile(path, how)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(checkedConnector{opener.Driver(), nameOf(path, how), check})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, opener.Close()
}

func openFile(path string, how url.Values) (*sql.DB, error) {
	return sql.Open("sqlite", nameOf(path, how))
}

// nameOf returns a file name in the form that SQLite expects.
func nameOf(path string, how url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // before a drive letter
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: how.Encode()}).String()
}

func (s *database) Ping(ctx context.Context) error {
	return wrapError("ping the store", errors.Join(s.files.checkFiles(), s.readers.db.PingContext(ctx)))
}

func (s *database) Lanes() int { return 1 }

// Close waits for the write in progress. It releases the lock file last.
func (s *database) Close() error {
	whole := s.files != nil && s.conn != nil && s.files.checkFiles() == nil
	err := errors.Join(s.readers.close(), s.writeLane.close())
	if s.writer != nil {
		err = errors.Join(err, s.writer.Close())
	}
	if s.files != nil {
		err = errors.Join(err, s.files.close())
	}
	if whole && err == nil {
		err = s.files.clearMark()
	}
	if e := s.lock.Close(); !errors.Is(e, os.ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}
