package listing

import "github.com/troupe-engine/troupe/persistence"

// ViewColumns are the columns that ScanView reads.
const ViewColumns = "name, query, updated_at, updated_by"

// ScanView reads ViewColumns.
func ScanView(row Row, v *persistence.SavedView) error {
	return row.Scan(&v.Name, &v.Query, &v.UpdatedAt, &v.UpdatedBy)
}
