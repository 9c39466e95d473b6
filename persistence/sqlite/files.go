package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/persistence"
)

// databaseFiles are the database, its log and its lock file, as this store opened them. They are
// checked before each write and each use of a connection, because SQLite would continue in a file
// that was moved or replaced.
//
// A mark in the database and in the lock file shows whether the log is missing. The first
// transaction after a change of the database file raises the mark. So the database file has the
// mark of the lock file as soon as it contains the whole log.
type databaseFiles struct {
	path string
	lock *os.File
	// kept open until SQLite has closed the database, because closing releases SQLite's locks
	database        *os.File
	main, log, held os.FileInfo // state of the files when they were opened
	lastState       os.FileInfo // state of the database file after the last transaction
	inMain          uint32      // mark in the database file
	logged          int64       // bytes of the log after the last transaction
	mark            uint32      // newest mark
	due             bool        // the next transaction must raise the mark
}

// These are offsets in the header of a SQLite file: the page size, the size in pages, and a number
// that programs may set.
const (
	pageSizeAt = 16
	pagesAt    = 28
	markOfAt   = 60
)

// checkComplete returns an error if the database or its log is missing, according to the mark in
// the lock file.
func checkComplete(path string, lock *os.File) error {
	mark, err := readMark(lock)
	if err != nil {
		return err
	}
	log, none := os.Stat(path + "-wal")
	head, err := readHead(path)
	if err != nil {
		return err
	}
	const restored = "if it is meant to be gone, or was restored from a backup, remove %s"
	switch {
	case len(head) == 0 && none == nil && log.Size() > 0:
		return fmt.Errorf("%s is missing or empty, but its log %s-wal is there: put the file back, or remove the log, too", path, path)
	case len(head) == 0 && mark > 0:
		return fmt.Errorf("%s is missing or empty, although its last member did not close it: "+
			"put it back, with %s-wal; "+restored, path, path, lock.Name())
	case none != nil && mark > 0 && markOf(head) < mark:
		return fmt.Errorf("the log %s-wal is missing, and what was stored last is in it: put it "+
			"back beside %s; "+restored, path, path, lock.Name())
	}
	return nil
}

// markOf returns the mark in the header of a database.
func markOf(head []byte) uint32 {
	if len(head) < headSize {
		return 0
	}
	return binary.BigEndian.Uint32(head[markOfAt:])
}

// markWidth is the fixed length of a mark in the lock file, so that a new mark needs no disk space.
const markWidth = 11

// readMark returns the mark in a lock file; 0 if there is none.
func readMark(lock *os.File) (uint32, error) {
	text := make([]byte, markWidth)
	n, err := lock.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	mark, err := strconv.ParseUint(strings.TrimSpace(string(text[:n])), 10, 32)
	if err != nil {
		return 0, nil // the lock file is new, or another program made it
	}
	return uint32(mark), nil
}

func (f *databaseFiles) writeMark(mark uint32) error {
	_, err := f.lock.WriteAt(fmt.Appendf(nil, "%*d\n", markWidth-1, mark), 0)
	return errors.Join(err, f.lock.Sync())
}

// newFiles opens the database file and records the state of all files. The log exists once the
// database has been read.
func newFiles(path string, lock *os.File) (*databaseFiles, error) {
	f := &databaseFiles{path: path, lock: lock, due: true}
	var err error
	if f.database, err = os.Open(path); err != nil {
		return f, err
	}
	head, err := f.head()
	if err != nil {
		return f, err
	}
	mark, err := readMark(lock)
	if err != nil {
		return f, err
	}
	f.inMain, f.mark = markOf(head), max(mark, markOf(head))
	f.main, err = os.Stat(path)
	if err == nil {
		f.log, err = os.Stat(path + "-wal")
	}
	if err == nil {
		f.held, err = lock.Stat()
	}
	if err != nil {
		return f, err
	}
	f.lastState, f.logged = f.main, f.log.Size()
	return f, nil
}

// head returns the header of the opened database.
func (f *databaseFiles) head() ([]byte, error) {
	head := make([]byte, headSize)
	n, err := f.database.ReadAt(head, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head[:n], err
}

// close closes the database file. SQLite must have closed it before.
func (f *databaseFiles) close() error {
	if f.database == nil {
		return nil
	}
	err := f.database.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// checkFiles returns an error if a file was removed or replaced.
func (f *databaseFiles) checkFiles() error {
	for _, one := range []struct {
		path   string
		opened os.FileInfo
	}{{f.path, f.main}, {f.path + "-wal", f.log}, {f.lock.Name(), f.held}} {
		now, err := os.Stat(one.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &persistence.Outage{Reason: "its file was removed while it was in use",
				Err: fmt.Errorf("%s was removed: move it back", one.path)}
		case err == nil && !os.SameFile(now, one.opened):
			return &persistence.Outage{Reason: "its file was replaced while it was in use",
				Err: fmt.Errorf("%s was replaced by another file: move it back", one.path)}
		}
	}
	return nil
}

// checkWritten does the checks of checkFiles. It also returns an error if another program replaced
// content of the database with foreign or older content, or truncated the database or log. The
// caller must hold the lane.
func (f *databaseFiles) checkWritten() error {
	if err := f.checkFiles(); err != nil {
		return err
	}
	now, err := os.Stat(f.path)
	if err != nil {
		return nil // the write itself reports other problems
	}
	log, err := os.Stat(f.path + "-wal")
	changed, shorter := !sameContent(now, f.lastState), err == nil && log.Size() < f.logged
	if !changed && !shorter {
		return nil
	}
	head, err := f.head()
	switch {
	case err != nil:
		return nil
	case !isWhole(head, now.Size()):
		return &persistence.Outage{Reason: "its file was overwritten or cut short while it was in use", Err: f.spoiled(f.path)}
	case markOf(head) < f.inMain:
		return &persistence.Outage{Reason: "its file was overwritten by an older one while it was in use", Err: f.spoiled(f.path)}
	// only a part of the log was moved into the database
	case shorter && (!changed || markOf(head) < f.mark):
		return &persistence.Outage{Reason: "its log was cut short while it was in use", Err: f.spoiled(f.path + "-wal")}
	}
	f.lastState, f.inMain, f.due = now, markOf(head), true
	if shorter {
		f.logged = log.Size()
	}
	return nil
}

func (f *databaseFiles) spoiled(path string) error {
	return fmt.Errorf("%s is no longer what its member wrote: end the member and restore a backup", path)
}

// isWhole reports whether a file of the given size with this header is a complete store, according
// to the header.
func isWhole(head []byte, size int64) bool {
	if len(head) < headSize || !bytes.HasPrefix(head, []byte(magic)) || binary.BigEndian.Uint32(head[markAt:]) != ourMark {
		return false
	}
	page := int64(binary.BigEndian.Uint16(head[pageSizeAt:]))
	if page == 1 {
		page = 1 << 16
	}
	return page*int64(binary.BigEndian.Uint32(head[pagesAt:])) <= size
}

func sameContent(a, b os.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// raiseMark writes the next mark in a transaction, if due. It writes the lock file first, so that a
// missing log with that mark is detected.
func (f *databaseFiles) raiseMark(t writeTx) error {
	if !f.due {
		return nil
	}
	if err := f.writeMark(f.mark + 1); err != nil {
		return &persistence.Outage{Reason: "its lock cannot be written", Err: err}
	}
	_, err := t.lane.conn.ExecContext(t.ctx, fmt.Sprintf("PRAGMA user_version = %d", int32(f.mark+1)))
	return err
}

// recordState records the database file after a transaction. A raised mark becomes valid when the
// transaction commits. If a part of the log was moved into the database meanwhile, the next mark is
// due.
func (f *databaseFiles) recordState(committed bool) {
	switch {
	case f.due && committed:
		f.mark, f.due = f.mark+1, false
	case f.due:
		_ = f.writeMark(f.mark) // a higher mark could only refuse a complete database
	}
	if log, err := os.Stat(f.path + "-wal"); err == nil {
		f.logged = log.Size()
	}
	now, err := os.Stat(f.path)
	if err != nil || sameContent(now, f.lastState) {
		return
	}
	f.lastState, f.due = now, true
	if head, err := f.head(); err == nil {
		f.inMain = markOf(head)
	}
}

// clearMark clears the mark of a closed store if the log does not exist, because then the database
// has everything.
func (f *databaseFiles) clearMark() error {
	if _, err := os.Stat(f.path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.lock.Truncate(0)
}

// checkedConnector opens connections only while the files are the ones that the store opened.
type checkedConnector struct {
	driver driver.Driver
	name   string
	check  func() error
}

func (c checkedConnector) Driver() driver.Driver { return c.driver }

func (c checkedConnector) Connect(context.Context) (driver.Conn, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	conn, err := c.driver.Open(c.name)
	if err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
