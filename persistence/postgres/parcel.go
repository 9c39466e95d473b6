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

// parcel is a batch as it is sent: a list of each kind.
type parcel struct {
	lists    [len(kinds)]list
	creates  int
	repeated bool   // a task that begins may be there already
	version  string // of the last task that begins
}

// parcels are used again, because their buffers are large.
var parcels = sync.Pool{New: func() any { return new(parcel) }}

// keepAtMost is how large a parcel's lists may be, in bytes, to be kept for the next batch: the snapshot of a task
// of 100,000 units is far larger, and would stay in memory with the parcel.
const keepAtMost = 4 << 20

// giveBack ends the use of a parcel.
func (p *parcel) giveBack() {
	size := 0
	for kind := range p.lists {
		size += cap(p.lists[kind].buf)
	}
	if size <= keepAtMost {
		parcels.Put(p)
	}
}

// pack is false when a commit is malformed: its batch cannot be written as a whole.
func (p *parcel) pack(s *store, batch []persistence.Commit, repeated bool) bool {
	p.creates, p.repeated, p.version = 0, repeated, ""
	for kind := range p.lists {
		p.lists[kind].reset(s.types[kind])
	}
	for i := range batch {
		c := &batch[i]
		if malformed(c) {
			return false
		}
		p.add(c, &s.memory)
	}
	return true
}

// malformed is a task that does not begin with row 1.
func malformed(c *persistence.Commit) bool {
	return c.Create != nil && (c.Seq != 1 || c.Events == nil)
}

func (p *parcel) add(c *persistence.Commit, m *memory) {
	if c.Create != nil {
		p.addTask(c, m)
	} else {
		if c.Events == nil || !m.follows(c) {
			p.addLast(c)
			p.addGoingOn(c)
		}
		p.addChange(c)
	}
	if c.Events != nil {
		l := &p.lists[rows]
		l.begin(4)
		l.uuid(journalKey(c.Task))
		l.number(c.Seq)
		l.number(c.At)
		l.bytea(c.Events)
		l.end()
	}
	if c.Checkpoint {
		l := &p.lists[checks]
		l.begin(5)
		l.text(c.Task)
		l.number(c.Seq)
		l.number(0)
		l.number(int64(c.Snapshot.Len()))
		l.bytea(parts.First(c.Snapshot))
		l.end()
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
		p.lists[approvals].approval(c, &c.Approvals[i])
	}
}

// addLast adds which row of the task must be its last one.
func (p *parcel) addLast(c *persistence.Commit) {
	l := &p.lists[lasts]
	l.begin(2)
	l.uuid(journalKey(c.Task))
	if c.Events != nil {
		l.number(c.Seq - 1)
	} else {
		l.number(c.Seq)
	}
	l.end()
}

// addGoingOn adds a task that may have ended before, and has not after this commit.
func (p *parcel) addGoingOn(c *persistence.Commit) {
	if c.Events == nil || c.Columns == nil || c.Columns.EndedAt > 0 {
		return
	}
	l := &p.lists[goingOn]
	l.begin(1)
	l.text(c.Task)
	l.end()
}

// addTask expects only that a request with a key is repeated: other tasks have new ids.
func (p *parcel) addTask(c *persistence.Commit, m *memory) {
	p.creates++
	p.repeated = p.repeated || c.Create.BodyHash != ""
	n := c.Columns
	if n == nil {
		n = &persistence.Columns{Status: "pending"}
	}
	resting := c.Rest != nil && c.Rest.Resting
	if !m.knows(c.Create.VersionID) {
		p.addVersion(c.Create.VersionID)
	}
	l := &p.lists[tasks]
	l.begin(23)
	l.text(c.Task)
	l.text(c.Create.FlowID)
	l.text(c.Create.VersionID)
	l.number(c.Create.CreatedAt)
	l.number(c.At)
	l.number(n.EndedAt)
	if passing(c) != nil {
		l.number(c.Seq)
	} else {
		l.number(0)
	}
	l.number(int64(n.Steps))
	l.number(int64(n.Followed))
	l.boolean(n.Paused)
	l.boolean(resting)
	l.number(int64(persistence.ShardOf(c.Task)))
	if n.EndedAt > 0 || resting {
		l.number(c.At)
	} else {
		l.null(pgtype.Int8OID)
	}
	l.columnTexts(n)
	l.text(c.Create.BodyHash)
	l.jsonb(listing.Labels(c.Create.Labels))
	l.bytea(c.Create.Params)
	l.snapshot(passing(c))
	l.end()
}

// passing is a snapshot that the next one replaces.
func passing(c *persistence.Commit) flow.Snapshot {
	if c.Checkpoint {
		return nil
	}
	return c.Snapshot
}

// addVersion adds a version that must be there. Those of a batch are mostly one and the same.
func (p *parcel) addVersion(id string) {
	l := &p.lists[versions]
	if l.n > 0 && p.version == id {
		return
	}
	p.version = id
	l.begin(1)
	l.text(id)
	l.end()
}

// addChange leaves null what stays as it is.
func (p *parcel) addChange(c *persistence.Commit) {
	l, snapshot := &p.lists[changes], passing(c)
	switch {
	case c.Columns == nil && snapshot == nil && c.Rest == nil:
		return
	case c.Columns != nil && snapshot == nil && c.Rest == nil:
		l = &p.lists[columns]
	}
	l.begin(15)
	l.text(c.Task)
	l.number(c.Seq)
	l.number(c.At)
	if n := c.Columns; n != nil {
		l.number(n.EndedAt)
		l.number(int64(n.Steps))
		l.number(int64(n.Followed))
		l.boolean(n.Paused)
		l.columnTexts(n)
	} else {
		for _, oid := range nothing {
			l.null(oid)
		}
	}
	if c.Rest != nil {
		l.boolean(c.Rest.Resting)
	} else {
		l.null(pgtype.BoolOID)
	}
	l.snapshot(snapshot)
	l.end()
}

// nothing are the types of persistence.Columns.
var nothing = [...]uint32{pgtype.Int8OID, pgtype.Int8OID, pgtype.Int8OID, pgtype.BoolOID, pgtype.TextOID, pgtype.TextOID, pgtype.TextOID, pgtype.TextOID, pgtype.Int8OID, pgtype.TextOID}

func (l *list) columnTexts(n *persistence.Columns) {
	l.text(n.Status)
	l.words(n.Cursor)
	l.words(n.LastAction)
	l.words(n.Error)
	l.number(int64(n.Waits))
	l.text(listing.Wait(n.Wait))
}

// addRest has no wake to delete of a task that begins.
func (p *parcel) addRest(c *persistence.Commit) {
	switch {
	case c.Rest == nil:
	case c.Rest.Resting && c.Rest.Due != 0:
		p.lists[sleeps].wake(c)
	case c.Create == nil:
		p.lists[wakeups].wake(c)
	}
}

func (l *list) wake(c *persistence.Commit) {
	l.begin(4)
	l.text(c.Task)
	l.boolean(c.Create != nil)
	l.number(c.Rest.Due)
	l.number(int64(persistence.ShardOf(c.Task)))
	l.end()
}

// addJobs leaves a job out that one commit puts in and takes out, because both would happen at once. A task
// that begins has none to take out.
func (p *parcel) addJobs(c *persistence.Commit) {
	for _, job := range c.Enqueue {
		if !slices.Contains(c.Dequeue, job.JobID) {
			p.lists[enqueued].job(c, job)
		}
	}
	for _, id := range c.Dequeue {
		if c.Create == nil {
			p.lists[dequeued].job(c, persistence.QueueRow{JobID: id})
		}
	}
}

// addPermits leaves out what one commit asks for, or has, and releases, as addJobs does.
func (p *parcel) addPermits(c *persistence.Commit) {
	for i := range c.Permits.Ask {
		if r := &c.Permits.Ask[i]; !c.Permits.Released(r.Holder, r.Key) {
			p.lists[asked].permit(c, r)
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

func (l *list) permit(c *persistence.Commit, r *persistence.PermitRow) {
	holder, long := indexed(r.Holder)
	l.begin(13)
	l.text(c.Task)
	l.boolean(c.Create != nil)
	l.text(holder)
	l.text(r.Key)
	l.number(int64(persistence.ShardOf(r.Key)))
	l.number(int64(r.Limit))
	l.number(r.PerMS)
	l.text(r.Full)
	l.number(-int64(r.Priority))
	l.text(r.Fair)
	l.number(r.AskedAt)
	l.text(r.Turn)
	l.long(long)
	l.end()
}

func (l *list) permitID(c *persistence.Commit, id persistence.PermitID) {
	l.begin(3)
	l.text(c.Task)
	holder, _ := indexed(id.Holder)
	l.text(holder)
	l.text(id.Key)
	l.end()
}

func (l *list) job(c *persistence.Commit, job persistence.QueueRow) {
	id, long := indexed(job.JobID)
	l.begin(9)
	l.text(c.Task)
	l.boolean(c.Create != nil)
	l.text(id)
	l.text(job.Service)
	l.number(job.EnqueuedAt)
	l.text(job.Turn)
	l.number(int64(job.Size))
	l.jsonb(listing.ListOfLabels(job.Labels))
	l.long(long)
	l.end()
}

// shape and parameters of the statement that writes the batch.
func (p *parcel) shape(incarnation string, era int64) (s shape, parameters [][]byte) {
	parameters = append(make([][]byte, 0, 2+len(kinds)), []byte(incarnation), binary.BigEndian.AppendUint64(nil, uint64(era)))
	for kind := range p.lists {
		if l := &p.lists[kind]; l.n > 0 {
			s |= 1 << kind
			parameters = append(parameters, l.bytes())
		}
	}
	if p.creates > 0 && p.repeated {
		s |= 1 << repeated
	}
	return s, parameters
}
