package cluster

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"connectrpc.com/connect"
)

// What members say of themselves with each request.
const (
	clusterHeader = "Troupe-Cluster"
	toHeader      = "Troupe-Incarnation" // of the one who is asked
	secretHeader  = "Troupe-Cluster-Secret"
)

// Identity is which member of which cluster answers, or asks.
type Identity struct {
	Cluster     string
	Incarnation string
	Secret      string // that all members of the cluster know; "" where nobody else can reach them
}

// door lets members of this cluster in that mean this member.
type door struct {
	id  Identity
	log *slog.Logger

	mu   sync.Mutex
	told map[string]bool // what was refused, by host and reason
}

// mostTold bounds how many refusals are remembered, so that each is logged once.
const mostTold = 1000

func newDoor(id Identity, log *slog.Logger) *door {
	return &door{id: id, log: log, told: map[string]bool{}}
}

// check says why a request is refused. Of the cluster it tells nothing to who does not have the secret.
func (d *door) check(r *http.Request) error {
	var code connect.Code
	var why string
	switch {
	case !same(r.Header.Get(secretHeader), d.id.Secret):
		code, why = connect.CodeUnauthenticated, "the secret of the cluster is wrong or missing: give all members the same --cluster-secret-file"
	case r.Header.Get(clusterHeader) != d.id.Cluster:
		code, why = connect.CodePermissionDenied, fmt.Sprintf("this member belongs to the cluster %s: see --cluster", d.id.Cluster)
	case r.Header.Get(toHeader) != d.id.Incarnation:
		code, why = connect.CodeFailedPrecondition, "another member than the one that is meant answers here now"
	case r.ProtoMajor < 2:
		code, why = connect.CodeUnimplemented, "members talk to each other over HTTP/2, also through what is between them"
	default:
		return nil
	}
	d.tell(r, why)
	return connect.NewError(code, fmt.Errorf("%s", why))
}

// same takes the same time whatever is wrong.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// tell logs a refusal once for each host and reason.
func (d *door) tell(r *http.Request, why string) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if key := host + " " + why; !d.told[key] && len(d.told) < mostTold {
		d.told[key] = true
		d.log.Warn("another member was refused", "from", host, "why", why)
	}
}
