package gossip

import (
	"net"
	"slices"
	"strconv"
	"time"
)

// gossipJoiner contacts silent members, at the start and later, because the library drops members
// after a long silence.
type gossipJoiner struct {
	g        *Gossip
	answered map[string]bool // addresses that have answered but belong to no peer
	logged   map[string]bool // addresses logged as unreachable
}

func (j *gossipJoiner) retryJoins() {
	every := j.g.cfg.retry
	if every == 0 {
		every = time.Second
		if j.g.cfg.Profile == ProfileLAN {
			every = 5 * time.Second
		}
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		j.joinUnknown()
		select {
		case <-ticker.C:
		case <-j.g.ctx.Done():
			return
		}
	}
}

// joinUnknown contacts each address that belongs to no known peer.
func (j *gossipJoiner) joinUnknown() {
	peers := j.peerAddresses()
	if len(peers) == 0 {
		clear(j.answered)
	}
	for _, addr := range j.candidateAddresses() {
		if j.g.ctx.Err() != nil {
			return
		}
		if !peers[addr] && !j.answered[addr] {
			j.joinAddress(addr)
		}
	}
}

func (j *gossipJoiner) peerAddresses() map[string]bool {
	addrs := map[string]bool{}
	for _, p := range j.g.Peers() {
		addrs[p.Address] = true
	}
	return addrs
}

// candidateAddresses returns all addresses at which there may be a member.
func (j *gossipJoiner) candidateAddresses() []string {
	var all []string
	names := slices.Clone(j.g.cfg.Seeds)
	if j.g.cfg.Known != nil {
		names = append(names, j.g.cfg.Known()...)
	}
	for _, name := range names {
		found, err := j.resolveName(name)
		if err != nil {
			j.logFailure(name, err)
			continue
		}
		delete(j.logged, name)
		all = append(all, found...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(addr string) bool { return addr == j.g.Address() })
}

func (j *gossipJoiner) resolveName(name string) ([]string, error) {
	host, port, err := splitHostPort(name)
	if err != nil {
		return nil, err
	}
	found, err := j.g.resolveAddresses(host)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, ip := range found {
		all = append(all, net.JoinHostPort(ip.String(), strconv.Itoa(port)))
	}
	return all, nil
}

func (j *gossipJoiner) joinAddress(addr string) {
	list := j.g.runningList()
	if list == nil {
		return // gossip was closed meanwhile
	}
	if _, err := list.Join([]string{addr}); err != nil {
		j.logFailure("member at "+addr, err)
		return
	}
	delete(j.logged, "member at "+addr)
	if !j.peerAddresses()[addr] {
		j.answered[addr] = true
	}
}

// logFailure logs a failure once until it ends. The number of remembered failures is bounded.
func (j *gossipJoiner) logFailure(what string, err error) {
	if j.logged[what] || j.g.ctx.Err() != nil {
		return
	}
	if len(j.logged) >= maxRemembered {
		clear(j.logged)
	}
	j.logged[what] = true
	j.g.cfg.Log.Warn("joining gossip failed, retrying: check that the member runs, in the same cluster and with the same key",
		"address", what, "cluster", j.g.cfg.Cluster, "error", err)
}

// maxRemembered is the number of hosts remembered as logged.
const maxRemembered = 1000
