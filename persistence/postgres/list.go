package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// typeIDs are the ids of the kinds' types in one database.
type typeIDs [len(kinds)]uint32

// rowArray is an array of rows in PostgreSQL's binary format, written by hand: it is what most of a
// commit's own time goes into, and there are no two ways to write it.
type rowArray struct {
	buf []byte
	n   uint32
	row int // where the last row begins
}

// order is that of bytes on the wire.
var order = binary.BigEndian

// lengthAt is where the head of an array has its length: after the number of dimensions, whether
// there are nulls, and the type of the elements. A lower bound follows it.
const lengthAt = 12

func (l *rowArray) reset(element uint32) {
	l.n = 0
	l.buf = order.AppendUint32(l.buf[:0], 1)
	l.buf = order.AppendUint32(l.buf, 0)
	l.buf = order.AppendUint32(l.buf, element)
	l.buf = order.AppendUint32(l.buf, 0)
	l.buf = order.AppendUint32(l.buf, 1)
}

// beginRow begins a row of so many values, which end ends.
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

// putCleanText is a text for people.
func (l *rowArray) putCleanText(s string) { l.putText(listing.Text(s)) }

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

// putBytes is null for nil.
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

// putJSON is null for nil. In the binary format a version comes before the text.
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

// encodedBytes are valid until the next reset.
func (l *rowArray) encodedBytes() []byte {
	order.PutUint32(l.buf[lengthAt:], l.n)
	return l.buf
}
