package attached

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
)

// ticketSigner signs tickets. A ticket proves to members with the secret that a worker was given a
// job, with the delivery number and the enqueue time. The time distinguishes the attempt from one
// of a deleted task that was started again.
type ticketSigner struct {
	mac hash.Hash
	buf []byte // reused buffer of signed data
}

// proofBytes is the length of a MAC, which is enough to prevent guessing.
const proofBytes = 16

func newTicketSigner(secret string) *ticketSigner {
	return &ticketSigner{mac: hmac.New(sha256.New, []byte(secret))}
}

func (t *ticketSigner) signJob(id string, given, since uint64) []byte {
	t.mac.Reset()
	t.buf = binary.AppendUvarint(binary.AppendUvarint(append(t.buf[:0], "job:"...), given), since)
	t.mac.Write(append(t.buf, id...))
	return t.mac.Sum(make([]byte, 0, sha256.Size+2*binary.MaxVarintLen64))[:proofBytes]
}

// newTicket returns the ticket for a job. The caller holds the lock of Sessions.
func (t *ticketSigner) newTicket(id string, given int, since int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(t.signJob(id, uint64(given), uint64(since)), uint64(given)), uint64(since))
}

// verifyTicket returns the job, the delivery number and the enqueue time of a ticket. ok is false
// if the ticket is invalid or belongs to another job.
func (t *ticketSigner) verifyTicket(b *attach.Brought) (task string, at flow.Address, given int, since int64, ok bool) {
	ticket := b.GetTicket()
	if len(ticket) <= proofBytes {
		return "", flow.Address{}, 0, 0, false
	}
	told := ticket[proofBytes:]
	times, n := binary.Uvarint(told)
	begun, m := binary.Uvarint(told[max(n, 0):])
	if n <= 0 || m <= 0 || n+m != len(told) || times > 1<<31 || !hmac.Equal(t.signJob(b.GetId(), times, begun), ticket[:proofBytes]) {
		return "", flow.Address{}, 0, 0, false
	}
	task, at, err := flow.ParseJobID(b.GetId())
	return task, at, int(times), int64(begun), err == nil
}
