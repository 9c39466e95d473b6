package postgres

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
	"github.com/troupe-engine/troupe/persistence/internal/parts"
)

// packedBatch is an encoded batch, with one array for each kind of row.
type packedBatch struct {
	lists    [len(kinds)]rowArray
	creates  int
	repeated bool   // new tasks may exist already, because the batch was sent before
	version  string // version of the last added task
}

// parcels pools packed batches, because their buffers are large.
var parcels = sync.Pool{New: func() any { return new(packedBatch) }}

// keepAtMost is the largest total buffer size, in bytes, of a packed batch that returns to the
// pool. The snapshot of a task of 100,000 units is far larger and would stay in memory.
const keepAtMost = 4 << 20

// returnToPool puts the packed batch back into the pool, unless its buffers are too large.
func (p *packedBatch) returnToPool() {
	size := 0
	for kind := range p.lists {
		size += cap(p.lists[kind].buf)
	}
	if size <= keepAtMost {
		parcels.Put(p)
	}
}

// packBatch encodes a batch. It returns false if a commit is malformed, so that the batch cannot be
// written as a whole.
func (p *packedBatch) packBatch(s *database, batch []persistence.Commit, repeated bool) bool {
	p.creates, p.repeated, p.version = 0, repeated, ""
	for kind := range p.lists {
		p.lists[kind].reset(s.types[kind])
	}
	for i := range batch {
		c := &batch[i]
		if isMalformed(c) {
			return false
		}
		p.addCommit(c, &s.memory)
	}
	return true
}

// isMalformed reports whether a commit creates a task without row 1.
func isMalformed(c *persistence.Commit) bool {
	return c.Create != nil && (c.Seq != 1 || c.Events == nil)
}

func (p *packedBatch) addCommit(c *persistence.Commit, m *lastRowCache) {
	if c.Create != nil {
		p.addTask(c, m)
	} else {
		if c.Events == nil || !m.hasPrevious(c) {
			p.addLast(c)
			p.addGoingOn(c)
		}
		p.addChange(c)
	}
	if c.Events != nil {
		l := &p.lists[rows]
		l.beginRow(4)
		l.putUUID(journalKey(c.Task))
		l.putNumber(c.Seq)
		l.putNumber(c.At)
		l.putBytes(c.Events)
		l.endRow()
	}
	if c.Checkpoint {
		l := &p.lists[checks]
		l.beginRow(5)
		l.putText(c.Task)
		l.putNumber(c.Seq)
		l.putNumber(0)
		l.putNumber(int64(c.Snapshot.Len()))
		l.putBytes(parts.First(c.Snapshot))
		l.endRow()
	}
	p.addRest(c)
	p.addJobs(c)
	if c.Permits != nil {
		p.addPermits(c)
	}
	if c.Externals != nil {
		p.addExternals(c)
	}
	for i := range c.Approvals {
		p.lists[approvals].addApproval(c, &c.Approvals[i])
	}
}

// addLast adds the required sequence number of the task's last row.
func (p *packedBatch) addLast(c *persistence.Commit) {
	l := &p.lists[lasts]
	l.beginRow(2)
	l.putUUID(journalKey(c.Task))
	if c.Events != nil {
		l.putNumber(c.Seq - 1)
	} else {
		l.putNumber(c.Seq)
	}
	l.endRow()
}

// addGoingOn adds a task that may have ended before this commit and continues after it.
func (p *packedBatch) addGoingOn(c *persistence.Commit) {
	if c.Events == nil || c.Columns == nil || c.Columns.EndedAt > 0 {
		return
	}
	l := &p.lists[goingOn]
	l.beginRow(1)
	l.putText(c.Task)
	l.endRow()
}

// addTask adds a new task. Only tasks with a key may be repeated, because all other tasks have new
// ids.
func (p *packedBatch) addTask(c *persistence.Commit, m *lastRowCache) {
	p.creates++
	p.repeated = p.repeated || c.Create.BodyHash != ""
	n := c.Columns
	if n == nil {
		n = &persistence.Columns{Status: "pending"}
	}
	resting := c.Rest != nil && c.Rest.Resting
	if !m.knowsVersion(c.Create.VersionID) {
		p.addVersion(c.Create.VersionID)
	}
	l := &p.lists[tasks]
	l.beginRow(23)
	l.putText(c.Task)
	l.putText(c.Create.FlowID)
	l.putText(c.Create.VersionID)
	l.putNumber(c.Create.CreatedAt)
	l.putNumber(c.At)
	l.putNumber(n.EndedAt)
	if transientSnapshot(c) != nil {
		l.putNumber(c.Seq)
	} else {
		l.putNumber(0)
	}
	l.putNumber(int64(n.Steps))
	l.putNumber(int64(n.Followed))
	l.putBool(n.Paused)
	l.putBool(resting)
	l.putNumber(int64(persistence.ShardOf(c.Task)))
	if n.EndedAt > 0 || resting {
		l.putNumber(c.At)
	} else {
		l.putNull(pgtype.Int8OID)
	}
	l.columnTexts(n)
	l.putText(c.Create.BodyHash)
	l.putJSON(listing.Labels(c.Create.Labels))
	l.putBytes(c.Create.Params)
	l.putSnapshot(transientSnapshot(c))
	l.endRow()
}

// transientSnapshot returns a snapshot that is not a checkpoint; nil if there is none.
func transientSnapshot(c *persistence.Commit) flow.Snapshot {
	if c.Checkpoint {
		return nil
	}
	return c.Snapshot
}

// addVersion adds a version that must exist, unless the previous commit added the same one.
func (p *packedBatch) addVersion(id string) {
	l := &p.lists[versions]
	if l.n > 0 && p.version == id {
		return
	}
	p.version = id
	l.beginRow(1)
	l.putText(id)
	l.endRow()
}

// addChange adds the changes of a task, with null for unchanged values.
func (p *packedBatch) addChange(c *persistence.Commit) {
	l, snapshot := &p.lists[changes], transientSnapshot(c)
	switch {
	case c.Columns == nil && snapshot == nil && c.Rest == nil:
		return
	case c.Columns != nil && snapshot == nil && c.Rest == nil:
		l = &p.lists[columns]
	}
	l.beginRow(15)
	l.putText(c.Task)
	l.putNumber(c.Seq)
	l.putNumber(c.At)
	if n := c.Columns; n != nil {
		l.putNumber(n.EndedAt)
		l.putNumber(int64(n.Steps))
		l.putNumber(int64(n.Followed))
		l.putBool(n.Paused)
		l.columnTexts(n)
	} else {
		for _, oid := range nothing {
			l.putNull(oid)
		}
	}
	if c.Rest != nil {
		l.putBool(c.Rest.Resting)
	} else {
		l.putNull(pgtype.BoolOID)
	}
	l.putSnapshot(snapshot)
	l.endRow()
}

// nothing holds the types of the columns of persistence.Columns, to encode nulls.
var nothing = [...]uint32{pgtype.Int8OID, pgtype.Int8OID, pgtype.Int8OID, pgtype.BoolOID,
	pgtype.TextOID, pgtype.TextOID, pgtype.TextOID, pgtype.TextOID, pgtype.Int8OID, pgtype.TextOID}

func (l *rowArray) columnTexts(n *persistence.Columns) {
	l.putText(n.Status)
	l.putCleanText(n.Cursor)
	l.putCleanText(n.LastAction)
	l.putCleanText(n.Error)
	l.putNumber(int64(n.Waits))
	l.putText(listing.Wait(n.Wait))
}

// addRest adds the change of a task's rest. A new task has no wake to delete.
func (p *packedBatch) addRest(c *persistence.Commit) {
	switch {
	case c.Rest == nil:
	case c.Rest.Resting && c.Rest.Due != 0:
		p.lists[sleeps].addWake(c)
	case c.Create == nil:
		p.lists[wakeups].addWake(c)
	}
}

func (l *rowArray) addWake(c *persistence.Commit) {
	l.beginRow(4)
	l.putText(c.Task)
	l.putBool(c.Create != nil)
	l.putNumber(c.Rest.Due)
	l.putNumber(int64(persistence.ShardOf(c.Task)))
	l.endRow()
}

// addJobs adds the queue changes of a commit. It skips a job that the commit both enqueues and
// dequeues, because one statement cannot do both. A new task has no jobs to dequeue.
func (p *packedBatch) addJobs(c *persistence.Commit) {
	for _, job := range c.Enqueue {
		if !slices.Contains(c.Dequeue, job.JobID) {
			p.lists[enqueued].addJob(c, job)
		}
	}
	for _, id := range c.Dequeue {
		if c.Create == nil {
			p.lists[dequeued].addJob(c, persistence.QueueRow{JobID: id})
		}
	}
}

// addPermits adds the permit changes of a commit. It skips a permit that the commit also releases.
func (p *packedBatch) addPermits(c *persistence.Commit) {
	for i := range c.Permits.Ask {
		if r := &c.Permits.Ask[i]; !c.Permits.Released(r.Holder, r.Key) {
			p.lists[asked].addPermit(c, r)
		}
	}
	for _, id := range c.Permits.Hold {
		if !c.Permits.Released(id.Holder, id.Key) {
			p.lists[holds].permitID(c, id)
		}
	}
	for _, id := range c.Permits.Release {
		p.lists[releases].permitID(c, id)
	}
}

func (l *rowArray) addPermit(c *persistence.Commit, r *persistence.PermitRow) {
	holder, long := indexKey(r.Holder)
	l.beginRow(13)
	l.putText(c.Task)
	l.putBool(c.Create != nil)
	l.putText(holder)
	l.putText(r.Key)
	l.putNumber(int64(persistence.ShardOf(r.Key)))
	l.putNumber(int64(r.Limit))
	l.putNumber(r.PerMS)
	l.putText(r.Full)
	l.putNumber(-int64(r.Priority))
	l.putText(r.Fair)
	l.putNumber(r.AskedAt)
	l.putText(r.Turn)
	l.putLongID(long)
	l.endRow()
}

func (l *rowArray) permitID(c *persistence.Commit, id persistence.PermitID) {
	l.beginRow(3)
	l.putText(c.Task)
	holder, _ := indexKey(id.Holder)
	l.putText(holder)
	l.putText(id.Key)
	l.endRow()
}

func (l *rowArray) addJob(c *persistence.Commit, job persistence.QueueRow) {
	id, long := indexKey(job.JobID)
	l.beginRow(9)
	l.putText(c.Task)
	l.putBool(c.Create != nil)
	l.putText(id)
	l.putText(job.Service)
	l.putNumber(job.EnqueuedAt)
	l.putText(job.Turn)
	l.putNumber(int64(job.Size))
	l.putJSON(listing.ListOfLabels(job.Labels))
	l.putLongID(long)
	l.endRow()
}

// shapeAndParameters returns the shape and the parameters of the statement that writes the batch.
func (p *packedBatch) shapeAndParameters(incarnation string, era int64) (s statementShape, parameters [][]byte) {
	parameters = append(make([][]byte, 0, 2+len(kinds)), []byte(incarnation), binary.BigEndian.AppendUint64(nil, uint64(era)))
	for kind := range p.lists {
		if l := &p.lists[kind]; l.n > 0 {
			s |= 1 << kind
			parameters = append(parameters, l.encodedBytes())
		}
	}
	if p.creates > 0 && p.repeated {
		s |= 1 << repeated
	}
	return s, parameters
}
