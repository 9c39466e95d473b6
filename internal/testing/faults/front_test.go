package faults

import (
	"errors"
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// storeFront is the address of the store that members know. It leads each host to a server, as an
// address does that moves with the primary. A host that is led elsewhere loses its connections.
type storeFront struct {
	ways []*frontWay // by host
	open sync.WaitGroup
}

// frontWay is the way of one host.
type frontWay struct {
	listener net.Listener

	mu    sync.Mutex
	to    string
	conns map[net.Conn]bool
}

// newStoreFront returns a front that leads n hosts to a server.
func newStoreFront(n int, to *pgtest.Server) (*storeFront, error) {
	f := &storeFront{}
	for i := range n {
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		way := &frontWay{listener: l, conns: map[net.Conn]bool{}}
		f.ways = append(f.ways, way)
		f.leadHost(i, to)
		f.open.Go(func() { f.acceptFrom(way) })
	}
	return f, nil
}

// portFor returns the port at which a host reaches the store.
func (f *storeFront) portFor(host int) int { return f.ways[host].listener.Addr().(*net.TCPAddr).Port }

// leadHost leads a host to a server, and closes the connections that it has.
func (f *storeFront) leadHost(host int, to *pgtest.Server) {
	w := f.ways[host]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = net.JoinHostPort("127.0.0.1", strconv.Itoa(to.Port()))
	for conn := range w.conns {
		_ = conn.Close()
	}
}

// leadAll leads all hosts to a server.
func (f *storeFront) leadAll(to *pgtest.Server) {
	for i := range f.ways {
		f.leadHost(i, to)
	}
}

// acceptFrom forwards the connections of a host until the front is closed.
func (f *storeFront) acceptFrom(w *frontWay) {
	for {
		in, err := w.listener.Accept()
		if err != nil {
			return // it is closed
		}
		f.open.Go(func() { w.forwardConn(in) })
	}
}

// forwardConn carries a connection both ways until either end closes it, or the way leads
// elsewhere.
func (w *frontWay) forwardConn(in net.Conn) {
	defer in.Close()
	w.mu.Lock()
	to := w.to
	w.conns[in] = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, in)
	}()
	out, err := net.Dial("tcp", to)
	if err != nil {
		_ = in.(*net.TCPConn).SetLinger(0) // the caller sees that nothing listens there
		return
	}
	defer out.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out)
		_ = in.Close()
	})
	_, _ = io.Copy(out, in)
	_ = out.Close()
	back.Wait()
}

// close ends the front and all connections.
func (f *storeFront) close() error {
	var err error
	for _, w := range f.ways {
		err = errors.Join(err, w.listener.Close())
		w.mu.Lock()
		for conn := range w.conns {
			_ = conn.Close()
		}
		w.mu.Unlock()
	}
	f.open.Wait()
	return err
}
