package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// typeIDs are the ids of the types of all kinds of rows in one database.
type typeIDs [len(kinds)]uint32

// rowArray is an array of rows in PostgreSQL's binary format. It is encoded by hand, because
// encoding takes most of the time of a commit in this process.
type rowArray struct {
	buf []byte
	n   uint32
	row int // start of the last row
}

// order is the byte order on the wire.
var order = binary.BigEndian

// lengthAt is the offset of the length in the header of an array. The number of dimensions, the
// null flag and the element type come before, and a lower bound follows.
const lengthAt = 12

func (l *rowArray) reset(element uint32) {
	l.n = 0
	l.buf = order.AppendUint32(l.buf[:0], 1)
	l.buf = order.AppendUint32(l.buf, 0)
	l.buf = order.AppendUint32(l.buf, element)
	l.buf = order.AppendUint32(l.buf, 0)
	l.buf = order.AppendUint32(l.buf, 1)
}

// beginRow begins a row with the given number of values; endRow ends it.
func (l *rowArray) beginRow(values int) {
	l.n++
	l.row = len(l.buf)
	l.buf = order.AppendUint32(l.buf, 0)
	l.buf = order.AppendUint32(l.buf, uint32(values))
}

func (l *rowArray) endRow() { order.PutUint32(l.buf[l.row:], uint32(len(l.buf)-l.row-4)) }

func (l *rowArray) putText(s string) {
	l.putHead(pgtype.TextOID, len(s))
	l.buf = append(l.buf, s...)
}

// putCleanText appends a text for display, without characters that the database cannot store.
func (l *rowArray) putCleanText(s string) { l.putText(persistence.CleanText(s)) }

func (l *rowArray) putUUID(id [16]byte) {
	l.putHead(pgtype.UUIDOID, len(id))
	l.buf = append(l.buf, id[:]...)
}

func (l *rowArray) putNumber(n int64) {
	l.putHead(pgtype.Int8OID, 8)
	l.buf = order.AppendUint64(l.buf, uint64(n))
}

func (l *rowArray) putBool(b bool) {
	l.putHead(pgtype.BoolOID, 1)
	if b {
		l.buf = append(l.buf, 1)
	} else {
		l.buf = append(l.buf, 0)
	}
}

// putBytes appends bytes, or null for nil.
func (l *rowArray) putBytes(b []byte) {
	if b == nil {
		l.putNull(pgtype.ByteaOID)
		return
	}
	l.putHead(pgtype.ByteaOID, len(b))
	l.buf = append(l.buf, b...)
}

func (l *rowArray) putSnapshot(s flow.Snapshot) {
	if s == nil {
		l.putNull(pgtype.ByteaOID)
		return
	}
	l.putHead(pgtype.ByteaOID, s.Len())
	for _, piece := range s {
		l.buf = append(l.buf, piece...)
	}
}

// putJSON appends JSON, or null for nil. In the binary format, a version byte precedes the text.
func (l *rowArray) putJSON(s *string) {
	if s == nil {
		l.putNull(pgtype.JSONBOID)
		return
	}
	l.putHead(pgtype.JSONBOID, 1+len(*s))
	l.buf = append(append(l.buf, 1), *s...)
}

func (l *rowArray) putNull(oid uint32) { l.putHead(oid, -1) }

func (l *rowArray) putHead(oid uint32, length int) {
	l.buf = order.AppendUint32(l.buf, oid)
	l.buf = order.AppendUint32(l.buf, uint32(int32(length)))
}

// encodedBytes returns the encoded array, valid until the next reset.
func (l *rowArray) encodedBytes() []byte {
	order.PutUint32(l.buf[lengthAt:], l.n)
	return l.buf
}
