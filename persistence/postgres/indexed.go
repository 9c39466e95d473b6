package postgres

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// spelledID is how many bytes of a job's id an index has. A row of an index has 2,704 at most, and
// other columns in it.
const spelledID = 500

// indexKey is what indexes have of a job's id. An id has the path of its scope in it, and scopes
// lie deep in each other: of a long one it is the beginning and the hash, and long is all of it,
// which is kept beside that; "" = the id is whole.
func indexKey(id string) (key, long string) {
	if len(id) <= spelledID {
		return id, ""
	}
	sum := sha256.Sum256([]byte(id))
	return strings.ToValidUTF8(id[:spelledID], "") + "~" + base64.RawURLEncoding.EncodeToString(sum[:]), id
}

// putLongID is an id that is kept beside its key, if there is one.
func (l *rowArray) putLongID(id string) {
	if id == "" {
		l.putNull(pgtype.TextOID)
		return
	}
	l.putText(id)
}
