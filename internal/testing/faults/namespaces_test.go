package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/troupe-engine/troupe/internal/testing/process"
)

// namespaces are hosts with a network namespace each. A host has three interfaces, whose other ends
// are ports of three bridges here: between hosts, to the store, and to callers. Cutting a link
// removes its port from the bridge: packets vanish without an error at either end.
type namespaces struct {
	storePort portOf
	nets      []*os.File
}

// bridges are named by their last letter and have a network each. Hosts are .11 and up; callers,
// workers and the store are here and use .1.
var bridges = [...]struct {
	letter  string
	network string
}{peers: {"p", "10.213.1."}, store: {"s", "10.213.2."}, front: {"f", "10.213.3."}}

// front is the link that is never cut.
const front link = 2

func newNamespaces(n int, storePort portOf) (*namespaces, error) {
	ns := &namespaces{storePort: storePort}
	var script strings.Builder
	for i, b := range bridges {
		// A bridge has its own MAC address. Otherwise it would use that of a port, which changes
		// when the port is cut.
		fmt.Fprintf(&script, "link add br%[1]s address 02:00:00:00:00:%02[3]x type bridge\nlink "+
			"set br%[1]s up\naddr add %[2]s1/24 dev br%[1]s\n", b.letter, b.network, i+1)
	}
	if err := ip(script.String()); err != nil {
		return nil, err
	}
	for i := range n {
		if err := ns.add(i); err != nil {
			return nil, errors.Join(err, ns.close())
		}
	}
	return ns, nil
}

// add creates a host. Its ends of the cables are created inside, the other ends here.
func (ns *namespaces) add(i int) error {
	net, err := newNamespace()
	if err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	ns.nets = append(ns.nets, net)
	var there, here strings.Builder
	fmt.Fprintln(&there, "link set lo up")
	for _, b := range bridges {
		fmt.Fprintf(&there, "link add eth%[1]s type veth peer name %[1]s%[2]d netns %[3]d\naddr "+
			"add %[4]s%[5]d/24 dev eth%[1]s\nlink set eth%[1]s up\n",
			b.letter, i, os.Getpid(), b.network, 11+i)
		fmt.Fprintf(&here, "link set %[1]s%[2]d master br%[1]s up\n", b.letter, i)
	}
	if err := apart(func() error { return errors.Join(ns.enter(i), ip(there.String())) }); err != nil {
		return err
	}
	return ip(here.String())
}

func (ns *namespaces) kind() string { return "network namespaces" }

func (ns *namespaces) site(i int) site {
	at := func(l link, n int) string { return fmt.Sprint(bridges[l].network, n) }
	return site{bind: "0.0.0.0", name: at(peers, 11+i), front: at(front, 11+i), workers: at(front, 1),
		store: fmt.Sprintf("%s:%d", at(store, 1), ns.storePort(i)), api: 8070, gossip: 8071}
}

func (ns *namespaces) start(i int, dir, name string, cmd *exec.Cmd) (*process.Process, error) {
	return process.StartIn(func() error { return ns.enter(i) }, dir, name, cmd)
}

// enter moves the thread to a host.
func (ns *namespaces) enter(i int) error { return unix.Setns(int(ns.nets[i].Fd()), unix.CLONE_NEWNET) }

func (ns *namespaces) cut(i int, l link) error {
	return ip(fmt.Sprintf("link set %s%d nomaster\n", bridges[l].letter, i))
}

func (ns *namespaces) heal(i int, l link) error {
	return ip(fmt.Sprintf("link set %[1]s%[2]d master br%[1]s\n", bridges[l].letter, i))
}

// close removes everything: a namespace ends with its last file, and a cable with either end.
func (ns *namespaces) close() error {
	var script strings.Builder
	for _, b := range bridges {
		fmt.Fprintf(&script, "link del br%s\n", b.letter)
		for i := range ns.nets {
			fmt.Fprintf(&script, "link del %s%d\n", b.letter, i)
		}
	}
	err := ip(script.String())
	for _, net := range ns.nets {
		err = errors.Join(err, net.Close())
	}
	return err
}

// newNamespace creates an empty network namespace.
func newNamespace() (net *os.File, err error) {
	err = apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		net, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return net, err
}

// apart calls do on a thread that ends afterwards.
func apart(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		done <- do()
	}()
	return <-done
}

// ip runs a script of the program ip in the network of the thread.
func ip(script string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s, of\n%s", err, bytes.TrimSpace(out), script)
	}
	return nil
}
