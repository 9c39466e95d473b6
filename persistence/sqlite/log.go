package sqlite

import (
	"fmt"
	"os"
	"time"
)

// walFile is the file that what is written stands in at first, beside the database. It is begun
// anew when all of it is in the database and nobody reads in it; where each reader comes before the
// one before has gone, that is never, and it would grow as long as the store is open.
type walFile struct {
	path       string
	most, next int64 // bytes: how long it may get, and get again before the next try
}

// How long it may get, and for how long whoever writes waits for those who read.
const (
	logMost  = 64 << 20
	logWait  = 250 * time.Millisecond
	busyWait = 10 * time.Second // of everything else
)

func newLog(path string, most int64) *walFile { return &walFile{path + "-wal", most, most} }

// truncateIfLong cuts it off, if it has become long. Those who come meanwhile read in the database,
// so only readers of before are waited for. What fails is tried again when it is longer by a
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

// fileSize is 0 when there is none.
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
