package attached

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
)

// tickets prove to all members who know the secret that a worker was given a job, and which time of its being given that was.
type tickets struct {
	mac hash.Hash
	buf []byte // of what is signed
}

// proofBytes of a MAC are enough that nobody guesses one.
const proofBytes = 16

func newTickets(secret string) *tickets { return &tickets{mac: hmac.New(sha256.New, []byte(secret))} }

func (t *tickets) proof(id string, given uint64) []byte {
	t.mac.Reset()
	t.buf = binary.AppendUvarint(append(t.buf[:0], "job:"...), given)
	t.mac.Write(append(t.buf, id...))
	return t.mac.Sum(make([]byte, 0, sha256.Size+binary.MaxVarintLen64))[:proofBytes]
}

// of a job. The lock of Sessions is held.
func (t *tickets) of(id string, given int) []byte {
	return binary.AppendUvarint(t.proof(id, uint64(given)), uint64(given))
}

// read says which job a worker brings, and which time of its being given it was given it. Ok is false when the ticket is another
// job's, or nobody's.
func (t *tickets) read(b *attach.Brought) (task string, at flow.Address, given int, ok bool) {
	ticket := b.GetTicket()
	if len(ticket) <= proofBytes {
		return "", flow.Address{}, 0, false
	}
	told, n := binary.Uvarint(ticket[proofBytes:])
	if n != len(ticket)-proofBytes || told > 1<<31 || !hmac.Equal(t.proof(b.GetId(), told), ticket[:proofBytes]) {
		return "", flow.Address{}, 0, false
	}
	task, at, err := flow.ParseJobID(b.GetId())
	return task, at, int(told), err == nil
}
