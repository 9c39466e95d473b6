package faults

import (
	"errors"
	"net"
	"os/exec"
	"strconv"

	"github.com/troupe-engine/troupe/internal/process"
)

// hosts are machines of their own for members: each reaches the other ones, and the store, by links
// that can be cut. Whoever calls a member, and its workers, reach it by a third link, which holds.
type hosts interface {
	kind() string
	site(i int) site
	// start starts a program on a host. It knows the addresses of the host's site.
	start(i int, dir, name string, cmd *exec.Cmd) (*process.Process, error)
	// cut makes everything vanish that is sent over a link of a host, either way and without a
	// word; heal mends it.
	cut(i int, l link) error
	heal(i int, l link) error
	close() error
}

// link is what a host reaches somebody by.
type link int

const (
	peers link = iota // the other hosts
	store
)

func (l link) String() string { return [...]string{"the others", "the store"}[l] }

// site is where things are, as a host has them.
type site struct {
	bind     string // what its members listen at; both ports are theirs alone
	name     string // what other hosts reach it at
	front    string // what callers and workers reach it at
	workers  string // where workers are, as it reaches them
	store    string // HOST:PORT of the store, as it reaches it
	api      int    // port
	gossip   int    // port
	loopback bool   // all of that is loopback
}

func (s site) url() string { return "http://" + net.JoinHostPort(s.name, strconv.Itoa(s.api)) }

func (s site) base() string { return "http://" + net.JoinHostPort(s.front, strconv.Itoa(s.api)) }

func (s site) listen() string { return net.JoinHostPort(s.bind, strconv.Itoa(s.api)) }

func (s site) gossips() string { return net.JoinHostPort(s.bind, strconv.Itoa(s.gossip)) }

func (s site) seed() string { return net.JoinHostPort(s.name, strconv.Itoa(s.gossip)) }

// newHosts makes the best hosts that are permitted. The store listens on storePort of every address
// of ours.
func newHosts(n, storePort int) (hosts, error) {
	if inside() {
		return newNamespaces(n, storePort)
	}
	return newRelays(n, storePort)
}

// each does something for all hosts and tells all that went wrong.
func each(n int, do func(i int) error) error {
	var err error
	for i := range n {
		err = errors.Join(err, do(i))
	}
	return err
}
