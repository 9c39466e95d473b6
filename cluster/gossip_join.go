package cluster

import (
	"net"
	"slices"
	"strconv"
	"time"
)

// joiner looks for those who have not been heard of: when the member starts, and as long as it lives, because the
// library forgets who was silent for long.
type joiner struct {
	g       *Gossip
	through map[string]bool // addresses that have answered, though none of the peers has them
	told    map[string]bool // what was logged as out of reach
}

func (j *joiner) run() {
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
		j.look()
		select {
		case <-ticker.C:
		case <-j.g.ctx.Done():
			return
		}
	}
}

// look asks each address that nobody heard of has.
func (j *joiner) look() {
	peers := j.peers()
	if len(peers) == 0 {
		clear(j.through)
	}
	for _, addr := range j.addresses() {
		if j.g.ctx.Err() != nil {
			return
		}
		if !peers[addr] && !j.through[addr] {
			j.ask(addr)
		}
	}
}

func (j *joiner) peers() map[string]bool {
	addrs := map[string]bool{}
	for _, p := range j.g.Peers() {
		addrs[p.Address] = true
	}
	return addrs
}

// addresses are all at which there may be a member.
func (j *joiner) addresses() []string {
	var all []string
	names := slices.Clone(j.g.cfg.Seeds)
	if j.g.cfg.Known != nil {
		names = append(names, j.g.cfg.Known()...)
	}
	for _, name := range names {
		found, err := j.resolve(name)
		if err != nil {
			j.failed(name, err)
			continue
		}
		delete(j.told, name)
		all = append(all, found...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(addr string) bool { return addr == j.g.Address() })
}

func (j *joiner) resolve(name string) ([]string, error) {
	host, port, err := splitHostPort(name)
	if err != nil {
		return nil, err
	}
	found, err := j.g.addresses(host)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, ip := range found {
		all = append(all, net.JoinHostPort(ip.String(), strconv.Itoa(port)))
	}
	return all, nil
}

func (j *joiner) ask(addr string) {
	list := j.g.running()
	if list == nil {
		return // it was closed meanwhile
	}
	if _, err := list.Join([]string{addr}); err != nil {
		j.failed("member at "+addr, err)
		return
	}
	delete(j.told, "member at "+addr)
	if !j.peers()[addr] {
		j.through[addr] = true
	}
}

// failed logs once until it comes right. What is remembered for that is bounded.
func (j *joiner) failed(what string, err error) {
	if j.told[what] || j.g.ctx.Err() != nil {
		return
	}
	if len(j.told) >= maxRemembered {
		clear(j.told)
	}
	j.told[what] = true
	j.g.cfg.Log.Warn("this member cannot join the gossip there, and tries on: does that one run, in the same cluster and with the same key?",
		"there", what, "cluster", j.g.cfg.Cluster, "error", err)
}

// maxRemembered is how many hosts are remembered as logged.
const maxRemembered = 1000
