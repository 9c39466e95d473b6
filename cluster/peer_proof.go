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

// These headers open a stream to another member. The caller and the server both prove that they
// have the secret, which is never sent.
const (
	clusterHeader = "Troupe-Cluster"
	toHeader      = "Troupe-Incarnation" // incarnation of the server
	// the store's time in milliseconds, and a random text that is used once
	onceHeader  = "Troupe-Once"
	proofHeader = "Troupe-Proof"
)

// proofAge is the maximum age of a proof, and the maximum difference between the clocks of two
// members.
const proofAge = 30 * time.Second

// Identity identifies a member and its cluster in requests and responses.
type Identity struct {
	Cluster     string
	Incarnation string
	Secret      string // known only to the members of the cluster
}

// Seal returns a text for the store that is equal for members with the same secret. It does not
// reveal the secret.
func (id Identity) Seal() string { return id.computeProof("seals", http.Header{}) }

// signRequest adds the identity of the caller and its proof.
func (id Identity) signRequest(h http.Header, to string, now time.Time) {
	h.Set(clusterHeader, id.Cluster)
	h.Set(toHeader, to)
	h.Set(onceHeader, strconv.FormatInt(now.UnixMilli(), 10)+"."+rand.Text())
	h.Set(proofHeader, id.computeProof("asks", h))
}

// computeProof returns a text that only holders of the secret can compute. It covers the side
// (caller or server) and the caller's headers.
func (id Identity) computeProof(side string, asked http.Header) string {
	mac := hmac.New(sha256.New, []byte(id.Secret))
	for _, part := range []string{side, asked.Get(clusterHeader), asked.Get(toHeader), asked.Get(onceHeader)} {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return base64.RawStdEncoding.EncodeToString(mac.Sum(nil))
}

// verifyProof reports whether a proof was made with the same secret. Without a secret, no proof is
// valid.
func (id Identity) verifyProof(side string, asked, said http.Header) bool {
	return id.Secret != "" && hmac.Equal([]byte(id.computeProof(side, asked)), []byte(said.Get(proofHeader)))
}

// usedProofs remembers used proofs, so that an intercepted proof cannot be used again.
type usedProofs struct {
	mu         sync.Mutex
	young, old map[string]bool
	rotatedAt  time.Time
	now        func() time.Time // returns the store's time as known here
}

func newUsedProofs(now func() time.Time) *usedProofs {
	return &usedProofs{young: map[string]bool{}, now: now}
}

// isFirstUse reports whether a proof is recent and was not used before. It remembers only valid
// proofs, so their number is bounded by the streams that members open.
func (o *usedProofs) isFirstUse(said string) bool {
	text, _, _ := strings.Cut(said, ".")
	at, err := strconv.ParseInt(text, 10, 64)
	now := o.now()
	if err != nil || now.Sub(time.UnixMilli(at)).Abs() > proofAge {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.rotatedAt).Abs() > 2*proofAge { // no proof is valid for longer
		o.young, o.old, o.rotatedAt = map[string]bool{}, o.young, now
	}
	if o.young[said] || o.old[said] {
		return false
	}
	o.young[said] = true
	return true
}
