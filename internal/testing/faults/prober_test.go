package faults

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"time"
)

// prober is a program on a host. At one address it echoes (TCP and UDP); at the other one it
// accepts commands to send something.
type prober struct{ Echo, Front string }

// proberEnv holds a prober as JSON.
const proberEnv = "TROUPE_FAULTS_PROBER"

func (p prober) command() (*exec.Cmd, error) {
	text, err := json.Marshal(p)
	return itself(nil, proberEnv+"="+string(text)), err
}

// probe is the main function of such a process.
func probe(text string) error {
	var p prober
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	stream, err := net.Listen("tcp", p.Echo)
	if err != nil {
		return err
	}
	go echo(stream)
	packets, err := net.ListenPacket("udp", p.Echo)
	if err != nil {
		return err
	}
	s := &speaker{packets: packets, heard: make(chan struct{}, 100), kept: map[string]net.Conn{}}
	go s.hear()
	return http.ListenAndServe(p.Front, s)
}

// echo echoes each connection until the listener is closed.
func echo(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}

// speaker sends data to others. A named connection is kept open.
type speaker struct {
	packets net.PacketConn // shared by all, as in gossip
	heard   chan struct{}  // its answers
	mu      sync.Mutex
	kept    map[string]net.Conn
}

const question, answer = "?", "!"

// hear answers packets.
func (s *speaker) hear() {
	buffer := make([]byte, 100)
	for {
		n, from, err := s.packets.ReadFrom(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case string(buffer[:n]) == question:
			_, _ = s.packets.WriteTo([]byte(answer), from)
		case string(buffer[:n]) == answer:
			s.heard <- struct{}{}
		}
	}
}

func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	within, err := time.ParseDuration(r.FormValue("within"))
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if to := r.FormValue("to"); r.FormValue("by") == "udp" {
			err = s.ask(to, within)
		} else {
			err = s.say(r.FormValue("keep"), to, within)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusGatewayTimeout)
	}
}

// ask sends a packet and waits for its answer.
func (s *speaker) ask(whom string, within time.Duration) error {
	for len(s.heard) > 0 {
		<-s.heard // it came too late
	}
	to, err := net.ResolveUDPAddr("udp", whom)
	if err != nil {
		return err
	}
	_, _ = s.packets.WriteTo([]byte(question), to) // it may be refused, which counts as no answer
	select {
	case <-s.heard:
		return nil
	case <-time.After(within):
		return errors.New("no answer")
	}
}

// say sends a word over TCP and waits for its echo.
func (s *speaker) say(keep, to string, within time.Duration) error {
	conn := s.kept[keep]
	if conn == nil {
		var err error
		if conn, err = net.DialTimeout("tcp", to, within); err != nil {
			return err
		}
		if keep == "" {
			defer conn.Close()
		} else {
			s.kept[keep] = conn
		}
	}
	err := conn.SetDeadline(time.Now().Add(within))
	_, written := conn.Write([]byte("x"))
	_, read := io.ReadFull(conn, make([]byte, 1))
	return errors.Join(err, written, read)
}
