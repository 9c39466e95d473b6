package payload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"sort"
)

// Reader reads a value, with its references replaced by their contents, from any offset. Contents
// that are not read stay in the bucket. Before it returns the first byte of an object, it verifies
// the whole object against its hash.
type Reader struct {
	s     *Store
	ctx   context.Context
	parts []valuePart
	size  int64
	at    int64

	seen     map[int]bool // parts whose hash has been verified
	chunk    []byte       // the chunk that was read last
	chunkOf  int
	chunkOff int
}

// valuePart is a piece of the value: text, or the content of a reference.
type valuePart struct {
	from int64
	text []byte
	ref  *Ref
}

// chunkBytes is the number of bytes read from an object at once.
const chunkBytes = 1 << 20

// Reader returns a Reader of a value.
func (s *Store) Reader(ctx context.Context, v json.RawMessage) *Reader {
	r := &Reader{s: s, ctx: ctx, seen: map[int]bool{}, chunkOf: -1}
	for s != nil {
		ref, begin, end := s.nextReference(v)
		if begin < 0 {
			break
		}
		r.addPart(valuePart{text: v[:begin]}, begin)
		r.addPart(valuePart{ref: &ref}, ref.Size)
		v = v[end:]
	}
	r.addPart(valuePart{text: v}, len(v))
	return r
}

func (r *Reader) addPart(p valuePart, size int) {
	if size > 0 {
		p.from = r.size
		r.parts = append(r.parts, p)
		r.size += int64(size)
	}
}

// Size returns the number of bytes of the value.
func (r *Reader) Size() int64 { return r.size }

// Seek implements io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errors.New("there is nothing before the beginning")
	}
	r.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (r *Reader) Read(b []byte) (int, error) {
	if r.at >= r.size {
		return 0, io.EOF
	}
	i := sort.Search(len(r.parts), func(i int) bool { return r.parts[i].from > r.at }) - 1
	p := &r.parts[i]
	off := int(r.at - p.from)
	from := p.text
	if p.ref != nil {
		chunk, err := r.chunkAt(i, off)
		if err != nil {
			return 0, err
		}
		from, off = chunk, 0
	}
	n := copy(b, from[off:])
	r.at += int64(n)
	return n, nil
}

// chunkAt returns the bytes of an object from an offset up to the end of a chunk.
func (r *Reader) chunkAt(i, off int) ([]byte, error) {
	ref := r.parts[i].ref
	if err := r.checkObject(i, ref); err != nil {
		return nil, err
	}
	if in := off - r.chunkOff; r.chunkOf == i && in >= 0 && in < len(r.chunk) {
		return r.chunk[in:], nil
	}
	chunk, err := r.s.readPart(r.ctx, ref, off, min(chunkBytes, ref.Size-off))
	if err != nil {
		return nil, err
	}
	r.chunk, r.chunkOf, r.chunkOff = chunk, i, off
	return chunk, nil
}

// Check verifies that all objects of a value exist and match their hashes.
func (r *Reader) Check() error {
	for i := range r.parts {
		if ref := r.parts[i].ref; ref != nil {
			if err := r.checkObject(i, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkObject reads an object once, holding only a chunk of it in memory, and verifies its hash.
func (r *Reader) checkObject(i int, ref *Ref) error {
	if r.seen[i] {
		return nil
	}
	hash := sha256.New()
	for off := 0; off < ref.Size; off += len(r.chunk) {
		chunk, err := r.s.readPart(r.ctx, ref, off, min(chunkBytes, ref.Size-off))
		if err != nil {
			return err
		}
		hash.Write(chunk)
		r.chunk, r.chunkOf, r.chunkOff = chunk, i, off
	}
	if hex.EncodeToString(hash.Sum(nil)) != ref.contentHash() {
		return r.s.changedError(ref)
	}
	r.seen[i] = true
	return nil
}
