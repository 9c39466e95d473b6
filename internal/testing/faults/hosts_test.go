package faults

import (
	"errors"
	"net"
	"os/exec"
	"strconv"

	"github.com/troupe-engine/troupe/internal/testing/process"
)

// hosts are separate machines for members. They reach each other and the store by links that can be
// cut. Callers and workers reach a member by a third link, which is never cut.
type hosts interface {
	kind() string
	site(i int) site
	// start starts a program on a host. It sees the addresses of the host's site.
	start(i int, dir, name string, cmd *exec.Cmd) (*process.Process, error)
	// cut silently drops everything sent over a link of a host, in both directions; heal restores
	// the link.
	cut(i int, l link) error
	heal(i int, l link) error
	close() error
}

// link is a connection of a host.
type link int

const (
	peers link = iota // to the other hosts
	store
)

func (l link) String() string { return [...]string{"the others", "the store"}[l] }

// site holds the addresses seen by a host.
type site struct {
	bind     string // listen address of its members; both ports are reserved for them
	name     string // address for other hosts
	front    string // address for callers and workers
	workers  string // address of the workers
	store    string // HOST:PORT of the store
	api      int    // API port
	gossip   int    // gossip port
	loopback bool   // all addresses are loopback addresses
}

func (s site) url() string { return "http://" + net.JoinHostPort(s.name, strconv.Itoa(s.api)) }

func (s site) base() string { return "http://" + net.JoinHostPort(s.front, strconv.Itoa(s.api)) }

func (s site) listen() string { return net.JoinHostPort(s.bind, strconv.Itoa(s.api)) }

func (s site) gossips() string { return net.JoinHostPort(s.bind, strconv.Itoa(s.gossip)) }

func (s site) seed() string { return net.JoinHostPort(s.name, strconv.Itoa(s.gossip)) }

// portOf returns the port at which a host reaches the store, on every address of ours.
type portOf func(host int) int

// samePort has all hosts reach the store at one port.
func samePort(port int) portOf { return func(int) int { return port } }

// newHosts creates the best permitted kind of hosts.
func newHosts(n int, storePort portOf) (hosts, error) {
	if inside() {
		return newNamespaces(n, storePort)
	}
	return newRelays(n, storePort)
}

// each calls do for all hosts and joins the errors.
func each(n int, do func(i int) error) error {
	var err error
	for i := range n {
		err = errors.Join(err, do(i))
	}
	return err
}
