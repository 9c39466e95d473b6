package faults

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// soon is how long a cut link must give no answer. long is more than enough for any other answer,
// including retransmissions.
const (
	soon = 300 * time.Millisecond
	long = 20 * time.Second
)

func TestLinksCanBeCutAndRestored(t *testing.T) {
	for _, place := range kinds() {
		hosts, where := placeProbers(t, place)
		t.Run(hosts.kind(), func(t *testing.T) {
			where.reach(t, "0-1", "0-2", "1-0", "1-2", "2-0", "2-1", "0-store", "1-store", "2-store")

			require.NoError(t, hosts.cut(0, peers))
			where.reach(t, "1-2", "2-1", "0-store", "1-store", "2-store")
			require.NoError(t, hosts.heal(0, peers))
			where.reach(t, "0-1", "0-2", "1-0", "1-2", "2-0", "2-1", "0-store", "1-store", "2-store")

			require.NoError(t, hosts.cut(1, store))
			where.reach(t, "0-1", "0-2", "1-0", "1-2", "2-0", "2-1", "0-store", "2-store")

			require.NoError(t, hosts.cut(1, peers))
			where.reach(t, "0-2", "2-0", "0-store", "2-store")
			require.NoError(t, hosts.heal(1, store))
			require.NoError(t, hosts.heal(1, peers))
			where.reach(t, "0-1", "0-2", "1-0", "1-2", "2-0", "2-1", "0-store", "1-store", "2-store")
		})
	}
}

func TestDataSentOverACutLinkArrivesAfterItIsRestored(t *testing.T) {
	for _, place := range kinds() {
		hosts, where := placeProbers(t, place)
		t.Run(hosts.kind(), func(t *testing.T) {
			said := url.Values{"keep": {"connection"}, "to": {hosts.site(1).seed()}, "within": {long.String()}}
			require.NoError(t, where.tell(0, said))
			require.NoError(t, hosts.cut(1, peers))
			answered := meanwhile(func() error { return where.tell(0, said) })
			select {
			case err := <-answered:
				t.Fatalf("there was an answer over a cut link: %v", err)
			case <-time.After(soon):
			}
			require.NoError(t, hosts.heal(1, peers))
			require.NoError(t, <-answered)
		})
	}
}

// meanwhile runs do concurrently.
func meanwhile(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return done
}

type maker = func(n int, storePort portOf) (hosts, error)

// kinds returns all permitted kinds of hosts.
func kinds() []maker {
	all := []maker{func(n int, port portOf) (hosts, error) { return newRelays(n, port) }}
	if inside() {
		all = append(all, func(n int, port portOf) (hosts, error) { return newNamespaces(n, port) })
	}
	return all
}

// places are three hosts with a prober each, and a store that echoes.
type places struct {
	hosts
	client http.Client
}

func placeProbers(t *testing.T, place maker) (hosts, *places) {
	storage, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	t.Cleanup(func() { storage.Close() })
	go echo(storage)
	h, err := place(3, samePort(storage.Addr().(*net.TCPAddr).Port))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.close()) })
	p := &places{hosts: h}
	t.Cleanup(p.client.CloseIdleConnections)
	for i := range 3 {
		cmd, err := prober{Echo: h.site(i).gossips(), Front: h.site(i).listen()}.command()
		require.NoError(t, err)
		process, err := h.start(i, t.TempDir(), fmt.Sprintf("prober-%d", i), cmd)
		require.NoError(t, err)
		t.Cleanup(process.Kill)
		require.Eventually(t, func() bool { return p.hears(i, h.site(i).store, "tcp") }, long,
			10*time.Millisecond, "prober %d does not answer", i)
	}
	return h, p
}

// reach checks that exactly these pairs reach each other, by streams and by packets.
func (p *places) reach(t *testing.T, who ...string) {
	t.Helper()
	for i := range 3 {
		for j := range 3 {
			if i != j {
				p.reaches(t, who, fmt.Sprintf("%d-%d", i, j), i, p.site(j).seed(), "tcp", "udp")
			}
		}
		p.reaches(t, who, strconv.Itoa(i)+"-store", i, p.site(i).store, "tcp")
	}
}

func (p *places) reaches(t *testing.T, who []string, name string, i int, to string, by ...string) {
	t.Helper()
	for _, by := range by {
		if slices.Contains(who, name) { // a packet may get lost
			require.Eventually(t, func() bool { return p.hears(i, to, by) }, long, time.Millisecond, "%s by %s", name, by)
		} else {
			require.False(t, p.hears(i, to, by), "%s by %s", name, by)
		}
	}
}

func (p *places) hears(i int, to, by string) bool {
	return p.tell(i, url.Values{"to": {to}, "by": {by}, "within": {soon.String()}}) == nil
}

// tell makes a host's prober send something.
func (p *places) tell(i int, what url.Values) error {
	resp, err := p.client.Get(p.site(i).base() + "/?" + what.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}
