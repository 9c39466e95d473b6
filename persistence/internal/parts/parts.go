// Package parts splits large checkpoints. A store keeps the snapshot of a checkpoint in several
// rows of at most Size bytes, which are sent and read one after another. So a statement, a driver's
// buffer or a page cache never holds the whole snapshot.
package parts

import (
	"fmt"
	"iter"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// Size is the number of bytes of each part except the last.
const Size = persistence.LargeSnapshot

// Of yields the parts of a snapshot, numbered from 0. Each part is valid until the next one is
// yielded.
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

// First returns the part that is stored in the checkpoint's own row.
func First(snapshot flow.Snapshot) []byte {
	for _, part := range Of(snapshot) {
		return part
	}
	return nil // never reached, because there is always a part, possibly an empty one
}

// Head is the checkpoint's own row.
type Head struct {
	Size  int64 // size of all parts
	First []byte
}

// ScanHead reads the size and the first part.
func ScanHead(row listing.Row, h *Head) error { return row.Scan(&h.Size, &h.First) }

// Join returns a snapshot of size bytes from its first part and the other parts. read calls scan
// for each row of another part, in order. R is the driver's type for bytes that are not copied. It
// returns persistence.ErrNotFound if the parts were deleted meanwhile.
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
