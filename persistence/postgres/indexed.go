package postgres

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// spelledID is the number of bytes of a job id that an index stores. An index row has at most 2,704
// bytes, including other columns.
const spelledID = 500

// indexKey returns the form of a job id in indexes. An id contains the path of its scope, so it may
// be long. For a long id, key is its beginning and a hash, and long is the whole id, which is
// stored in another column. Otherwise long is "".
func indexKey(id string) (key, long string) {
	if len(id) <= spelledID {
		return id, ""
	}
	sum := sha256.Sum256([]byte(id))
	return strings.ToValidUTF8(id[:spelledID], "") + "~" + base64.RawURLEncoding.EncodeToString(sum[:]), id
}

// putLongID appends the whole id if indexKey has shortened the key, or else null.
func (l *rowArray) putLongID(id string) {
	if id == "" {
		l.putNull(pgtype.TextOID)
		return
	}
	l.putText(id)
}
