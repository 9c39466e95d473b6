package cluster

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What members say of themselves when one opens a stream to another. The secret itself does not
// travel: who asks proves that it has it, and so does who answers.
const (
	clusterHeader = "Troupe-Cluster"
	toHeader      = "Troupe-Incarnation" // of the one who is asked
	onceHeader    = "Troupe-Once"        // the store's time in milliseconds, and a text that is never used again
	proofHeader   = "Troupe-Proof"
)

// proofAge is how old a proof may be, and how far the times of two members may differ.
const proofAge = 30 * time.Second

// Identity is which member of which cluster answers, or asks.
type Identity struct {
	Cluster     string
	Incarnation string
	Secret      string // that all members of the cluster know, and nobody else
}

// Seal tells members with another secret apart in the store, where whoever reads it does not learn
// the secret.
func (id Identity) Seal() string { return id.computeProof("seals", http.Header{}) }

// signRequest says who asks, and proves it.
func (id Identity) signRequest(h http.Header, to string, now time.Time) {
	h.Set(clusterHeader, id.Cluster)
	h.Set(toHeader, to)
	h.Set(onceHeader, strconv.FormatInt(now.UnixMilli(), 10)+"."+rand.Text())
	h.Set(proofHeader, id.computeProof("asks", h))
}

// computeProof is what only who has the secret can say: of the side that says it, and of what the
// asker said.
func (id Identity) computeProof(side string, asked http.Header) string {
	mac := hmac.New(sha256.New, []byte(id.Secret))
	for _, part := range []string{side, asked.Get(clusterHeader), asked.Get(toHeader), asked.Get(onceHeader)} {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return base64.RawStdEncoding.EncodeToString(mac.Sum(nil))
}

// verifyProof reports whether a proof is of somebody who has the same secret. Who has none believes
// nobody.
func (id Identity) verifyProof(side string, asked, said http.Header) bool {
	return id.Secret != "" && hmac.Equal([]byte(id.computeProof(side, asked)), []byte(said.Get(proofHeader)))
}

// usedProofs remembers which proofs were used, so that nobody who overheard one gets in with it.
type usedProofs struct {
	mu         sync.Mutex
	young, old map[string]bool
	rotatedAt  time.Time
	now        func() time.Time // of the store, as it is known here
}

func newUsedProofs(now func() time.Time) *usedProofs {
	return &usedProofs{young: map[string]bool{}, now: now}
}

// isFirstUse reports whether a proof is of this moment and was not used before. Only what somebody
// said who has the secret is remembered, so it is bounded by how many streams members open.
func (o *usedProofs) isFirstUse(said string) bool {
	text, _, _ := strings.Cut(said, ".")
	at, err := strconv.ParseInt(text, 10, 64)
	now := o.now()
	if err != nil || now.Sub(time.UnixMilli(at)).Abs() > proofAge {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.rotatedAt).Abs() > 2*proofAge { // no proof is good for longer
		o.young, o.old, o.rotatedAt = map[string]bool{}, o.young, now
	}
	if o.young[said] || o.old[said] {
		return false
	}
	o.young[said] = true
	return true
}
