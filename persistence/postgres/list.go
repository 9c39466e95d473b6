package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// types are the ids of the kinds' types in one database.
type types [len(kinds)]uint32

// list is an array of rows in PostgreSQL's binary format, written by hand: it is what most of a commit's
// own time goes into, and there are no two ways to write it.
type list struct {
	buf []byte
	n   uint32
	row int // where the last row begins
}

// order is that of bytes on the wire.
var order = binary.BigEndian

// lengthAt is where the head of an array has its length: after the number of dimensions, whether there are nulls,
// and the type of the elements. A lower bound follows it.
const lengthAt = 12

func (l *list) reset(element uint32) {
	l.n = 0
	l.buf = order.AppendUint32(l.buf[:0], 1)
	l.buf = order.AppendUint32(l.buf, 0)
	l.buf = order.AppendUint32(l.buf, element)
	l.buf = order.AppendUint32(l.buf, 0)
	l.buf = order.AppendUint32(l.buf, 1)
}

// begin begins a row of so many values, which end ends.
func (l *list) begin(values int) {
	l.n++
	l.row = len(l.buf)
	l.buf = order.AppendUint32(l.buf, 0)
	l.buf = order.AppendUint32(l.buf, uint32(values))
}

func (l *list) end() { order.PutUint32(l.buf[l.row:], uint32(len(l.buf)-l.row-4)) }

func (l *list) text(s string) {
	l.head(pgtype.TextOID, len(s))
	l.buf = append(l.buf, s...)
}

// words is a text for people.
func (l *list) words(s string) { l.text(listing.Text(s)) }

func (l *list) uuid(id [16]byte) {
	l.head(pgtype.UUIDOID, len(id))
	l.buf = append(l.buf, id[:]...)
}

func (l *list) number(n int64) {
	l.head(pgtype.Int8OID, 8)
	l.buf = order.AppendUint64(l.buf, uint64(n))
}

func (l *list) boolean(b bool) {
	l.head(pgtype.BoolOID, 1)
	if b {
		l.buf = append(l.buf, 1)
	} else {
		l.buf = append(l.buf, 0)
	}
}

// bytea is null for nil.
func (l *list) bytea(b []byte) {
	if b == nil {
		l.null(pgtype.ByteaOID)
		return
	}
	l.head(pgtype.ByteaOID, len(b))
	l.buf = append(l.buf, b...)
}

func (l *list) snapshot(s flow.Snapshot) {
	if s == nil {
		l.null(pgtype.ByteaOID)
		return
	}
	l.head(pgtype.ByteaOID, s.Len())
	for _, piece := range s {
		l.buf = append(l.buf, piece...)
	}
}

// jsonb is null for nil. In the binary format a version comes before the text.
func (l *list) jsonb(s *string) {
	if s == nil {
		l.null(pgtype.JSONBOID)
		return
	}
	l.head(pgtype.JSONBOID, 1+len(*s))
	l.buf = append(append(l.buf, 1), *s...)
}

func (l *list) null(oid uint32) { l.head(oid, -1) }

func (l *list) head(oid uint32, length int) {
	l.buf = order.AppendUint32(l.buf, oid)
	l.buf = order.AppendUint32(l.buf, uint32(int32(length)))
}

// bytes are valid until the next reset.
func (l *list) bytes() []byte {
	order.PutUint32(l.buf[lengthAt:], l.n)
	return l.buf
}
