package listing

import "github.com/troupe-engine/troupe/persistence"

// TokenColumns are the columns that ScanToken reads.
const TokenColumns = "id, name, role, hash, created_at, created_by, expires_at, last_used_at"

// ScanToken reads TokenColumns.
func ScanToken(row Row, t *persistence.Token) error {
	return row.Scan(&t.ID, &t.Name, &t.Role, &t.Hash, &t.CreatedAt, &t.CreatedBy, &t.ExpiresAt, &t.LastUsedAt)
}
