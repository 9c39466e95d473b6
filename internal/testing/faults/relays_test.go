package faults

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/troupe-engine/troupe/internal/testing/process"
)

// relays are simulated hosts on loopback addresses. A host's program listens at 127.x.1.i. The
// addresses for others, 127.x.2.i, and for the store, 127.x.3.i, are relays here. A relay forwards
// data; if a link is cut it holds TCP data, like a retransmitting sender, and drops UDP packets.
type relays struct {
	block     int // x
	ports     [2]int
	storePort portOf
	gates     [][2]*gate
	pids      []atomic.Int64
	packets   []*net.UDPConn
	listeners []net.Listener
	conns     sync.WaitGroup
}

func newRelays(n int, storePort portOf) (*relays, error) {
	first := 20000 + rand.IntN(5900)*2 // below the kernel's ephemeral ports
	r := &relays{block: 1 + rand.IntN(250), ports: [2]int{first, first + 1}, storePort: storePort, pids: make([]atomic.Int64, n)}
	for range n { // all exist before the first use
		r.gates = append(r.gates, [2]*gate{newGate(), newGate()})
	}
	err := each(n, r.add)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	for i := range n {
		go r.forwardPackets(i)
	}
	return r, nil
}

func (r *relays) add(i int) error {
	for _, port := range r.ports {
		target := net.JoinHostPort(r.address(1, i), strconv.Itoa(port))
		err := r.listen(net.JoinHostPort(r.address(2, i), strconv.Itoa(port)), target, func(from net.Addr) []*gate {
			return r.between(r.dialer(from), i)
		})
		if err != nil {
			return err
		}
	}
	packets, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(r.udp(2, i)))
	if err != nil {
		return err
	}
	r.packets = append(r.packets, packets)
	target := net.JoinHostPort("127.0.0.1", strconv.Itoa(r.storePort(i)))
	return r.listen(r.site(i).store, target, func(net.Addr) []*gate { return []*gate{r.gates[i][store]} })
}

func (r *relays) address(block, i int) string {
	return fmt.Sprintf("127.%d.%d.%d", r.block, block, 11+i)
}

// udp returns the gossip address of a host: the real one (1) or the public one (2).
func (r *relays) udp(block, i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(r.address(block, i)), uint16(r.ports[1]))
}

func (r *relays) kind() string { return "relays on loopback" }

func (r *relays) site(i int) site {
	return site{bind: r.address(1, i), name: r.address(2, i), front: r.address(1, i), workers: "127.0.0.1",
		store: net.JoinHostPort(r.address(3, i), strconv.Itoa(r.ports[0])), api: r.ports[0], gossip: r.ports[1], loopback: true}
}

func (r *relays) start(i int, dir, name string, cmd *exec.Cmd) (*process.Process, error) {
	p, err := process.Start(dir, name, cmd)
	if err == nil {
		r.pids[i].Store(int64(p.Pid()))
	}
	return p, err
}

func (r *relays) cut(i int, l link) error  { r.gates[i][l].set(false); return nil }
func (r *relays) heal(i int, l link) error { r.gates[i][l].set(true); return nil }

// between returns the gates on the way from one host to another; none from -1, which is not a host.
func (r *relays) between(from, to int) []*gate {
	if from < 0 {
		return nil
	}
	return []*gate{r.gates[from][peers], r.gates[to][peers]}
}

func (r *relays) close() error {
	var err error
	for _, l := range r.listeners {
		err = errors.Join(err, l.Close())
	}
	for _, p := range r.packets {
		err = errors.Join(err, p.Close())
	}
	for _, gates := range r.gates {
		gates[peers].set(true)
		gates[store].set(true)
	}
	r.conns.Wait() // their programs have ended
	return err
}

// listen forwards connections from an address to another one.
func (r *relays) listen(address, target string, gates func(from net.Addr) []*gate) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	r.listeners = append(r.listeners, l)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			r.conns.Go(func() { forward(conn, target, gates(conn.RemoteAddr())) })
		}
	}()
	return nil
}

// forward relays a connection in both directions until both have ended. Without gates it is
// refused.
func forward(in net.Conn, target string, gates []*gate) {
	defer in.Close()
	if gates == nil {
		return
	}
	wait(gates)
	out, err := net.Dial("tcp", target)
	if err != nil {
		in.(*net.TCPConn).SetLinger(0) // the client sees a reset, as if nothing listened there
		return
	}
	defer out.Close()
	var both sync.WaitGroup
	both.Go(func() { copyThrough(out, in, gates) })
	both.Go(func() { copyThrough(in, out, gates) })
	both.Wait()
}

func copyThrough(to, from net.Conn, gates []*gate) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		wait(gates)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				from.Close()
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) { // it was reset
				to.(*net.TCPConn).SetLinger(0)
				to.Close()
			}
			to.(*net.TCPConn).CloseWrite()
			return
		}
	}
}

// forwardPackets forwards packets to a host, with the public address of the sender.
func (r *relays) forwardPackets(to int) {
	buffer := make([]byte, 64<<10)
	for {
		n, from, err := r.packets[to].ReadFromUDPAddrPort(buffer)
		if err != nil {
			return // it is closed
		}
		for i := range r.packets {
			if from == r.udp(1, i) && passable(r.between(i, to)) {
				// there may be no listener
				_, _ = r.packets[i].WriteToUDPAddrPort(buffer[:n], r.udp(1, to))
			}
		}
	}
}

// gate is open or blocks everything.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed when the gate is open
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch was := g.isOpen(); {
	case open && !was:
		close(g.open)
	case !open && was:
		g.open = make(chan struct{})
	}
}

func (g *gate) isOpen() bool {
	select {
	case <-g.open:
		return true
	default:
		return false
	}
}

func (g *gate) way() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// passable reports whether all gates are open.
func passable(gates []*gate) bool {
	for _, g := range gates {
		select {
		case <-g.way():
		default:
			return false
		}
	}
	return true
}

// wait waits until all gates are open at once.
func wait(gates []*gate) {
	for !passable(gates) {
		for _, g := range gates {
			<-g.way()
		}
	}
}
