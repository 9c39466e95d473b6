// Package parts takes large checkpoints apart. A store keeps the snapshot of one in several rows,
// each of at most Size bytes: sent and read one after the other, they are never as a whole in a
// statement, a driver's buffer or a page cache, beside the state that the snapshot belongs to.
package parts

import (
	"fmt"
	"iter"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// Size is how many bytes a part has, but for the last.
const Size = persistence.LargeSnapshot

// Of has the parts of a snapshot, numbered from 0. Each is valid until the next one.
func Of(snapshot flow.Snapshot) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		n, part := 0, make([]byte, 0, min(snapshot.Len(), Size))
		for _, piece := range snapshot {
			for len(piece) > 0 {
				if len(part) == Size {
					if !yield(n, part) {
						return
					}
					n, part = n+1, part[:0]
				}
				room := min(len(piece), Size-len(part))
				part, piece = append(part, piece[:room]...), piece[room:]
			}
		}
		yield(n, part)
	}
}

// First is what the row of the checkpoint itself holds.
func First(snapshot flow.Snapshot) []byte {
	for _, part := range Of(snapshot) {
		return part
	}
	return nil // never: there is a part, if an empty one
}

// Head is the row of a checkpoint itself.
type Head struct {
	Size  int64 // of all parts
	First []byte
}

// ScanHead reads size and first part.
func ScanHead(row listing.Row, h *Head) error { return row.Scan(&h.Size, &h.First) }

// Join puts the other parts behind the first one of a snapshot of size bytes: read has scan called
// for each of their rows, in order. R is the driver's type for bytes that stay its own.
// persistence.ErrNotFound says that they were deleted meanwhile, since a task goes with all its
// checkpoints.
func Join[R ~[]byte](first []byte, size int64, read func(scan func(listing.Row, *struct{}) error) error) ([]byte, error) {
	if int64(len(first)) == size {
		return first, nil
	}
	whole := append(make([]byte, 0, size), first...)
	err := read(func(row listing.Row, _ *struct{}) error {
		var part R
		if err := row.Scan(&part); err != nil {
			return err
		}
		whole = append(whole, part...)
		return nil
	})
	if err == nil && int64(len(whole)) != size {
		err = fmt.Errorf("a checkpoint has %d bytes instead of %d: %w", len(whole), size, persistence.ErrNotFound)
	}
	return whole, err
}
