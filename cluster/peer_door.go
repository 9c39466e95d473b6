package cluster

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// peerAuthenticator admits requests of members of this cluster to this incarnation.
type peerAuthenticator struct {
	id   Identity
	used *usedProofs
	log  *slog.Logger

	mu     sync.Mutex
	logged map[string]bool // logged refusals, by host and reason
}

// mostTold bounds the number of remembered refusals. Each is logged once.
const mostTold = 1000

func newDoor(id Identity, now func() time.Time, log *slog.Logger) *peerAuthenticator {
	return &peerAuthenticator{id: id, used: newUsedProofs(now), log: log, logged: map[string]bool{}}
}

// admitRequest checks a request. If it is admitted, it adds this member's proof to the response;
// otherwise it answers with the refusal.
func (d *peerAuthenticator) admitRequest(w http.ResponseWriter, r *http.Request) bool {
	if status, why := d.checkRequest(r); why != "" {
		d.logRefusal(r, why)
		http.Error(w, why, status)
		return false
	}
	w.Header().Set(proofHeader, d.id.computeProof("answers", r.Header))
	return true
}

// checkRequest returns why a request is refused, or "". A caller without the secret gets no
// information about the cluster.
func (d *peerAuthenticator) checkRequest(r *http.Request) (status int, why string) {
	switch {
	case !d.id.verifyProof("asks", r.Header, r.Header):
		return http.StatusUnauthorized, "the secret of the cluster is wrong or missing: give " +
			"all members the same --cluster-secret-file, or none of them any"
	case r.Header.Get(clusterHeader) != d.id.Cluster:
		return http.StatusForbidden, fmt.Sprintf("this member belongs to the cluster %s: see --cluster", d.id.Cluster)
	case r.Header.Get(toHeader) != d.id.Incarnation:
		return http.StatusPreconditionFailed, "another member than the one that is meant answers here now"
	case r.ProtoMajor < 2:
		return http.StatusHTTPVersionNotSupported, "members talk to each other over HTTP/2, also through what is between them"
	case !d.used.isFirstUse(r.Header.Get(onceHeader)):
		return http.StatusUnauthorized, "the proof of the secret was used before, or is not of this moment"
	}
	return 0, ""
}

// logRefusal logs a refusal once for each host and reason.
func (d *peerAuthenticator) logRefusal(r *http.Request, why string) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if key := host + " " + why; !d.logged[key] && len(d.logged) < mostTold {
		d.logged[key] = true
		d.log.Warn("member rejected", "host", host, "reason", why)
	}
}
