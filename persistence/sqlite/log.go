package sqlite

import (
	"fmt"
	"os"
	"time"
)

// walFile is the write-ahead log beside the database. SQLite restarts it only when the database has
// all of its content and no reader uses it. With overlapping readers that never happens, so the log
// would grow without limit.
type walFile struct {
	path       string
	most, next int64 // size limit, and the size at which truncation is tried next, in bytes
}

// logMost and the following limit the size of the log and the time that a truncation waits for
// readers.
const (
	logMost  = 64 << 20
	logWait  = 250 * time.Millisecond
	busyWait = 10 * time.Second // wait of all other operations
)

func newLog(path string, most int64) *walFile { return &walFile{path + "-wal", most, most} }

// truncateIfLong truncates a log that has become long. It waits only for earlier readers, because
// new readers read from the database. After a failure it tries again when the log has grown by a
// quarter.
func (l *walFile) truncateIfLong(t writeTx) {
	size := l.fileSize()
	if size < l.next {
		return
	}
	_ = t.busyWait(logWait)
	var busy, frames, moved int
	_ = t.queryOne("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &frames, &moved)
	_ = t.busyWait(busyWait)
	l.next = max(l.most, l.fileSize()*5/4)
}

// fileSize returns the size of the log; 0 if there is none.
func (l *walFile) fileSize() int64 {
	info, err := os.Stat(l.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (t writeTx) busyWait(d time.Duration) error {
	_, err := t.lane.conn.ExecContext(t.ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()))
	return err
}
