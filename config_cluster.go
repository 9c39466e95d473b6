package troupe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/cluster/gossip"
	"github.com/troupe-engine/troupe/member/membership"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

// gossipPort is the default port of gossip; when it is taken, a free port is used.
const gossipPort = "8071"

// The limits of a lease. A member renews its lease five times per lease, and at least each second.
// A shorter lease would expire whenever a disk is busy for a moment; with a longer one, tasks would
// wait too long for a dead member.
const (
	leastLease = time.Second
	mostLease  = 10 * time.Minute
)

// checkCluster rejects settings of a cluster that cannot work. locked reports that the store has
// room for one member only.
func (c *Config) checkCluster(locked bool) error {
	if c.Lease != 0 && (c.Lease < leastLease || c.Lease > mostLease) {
		return fmt.Errorf("--lease %s: leave a member from %s to %s without a sign of life "+
			"before the others take its tasks over", c.Lease, leastLease, mostLease)
	}
	if locked {
		for flag, set := range map[string]bool{"cluster": c.Cluster != "", "gossip": c.Gossip != "", "join": len(c.Join) > 0,
			"advertise": c.Advertise != "", "gossip-key-file": c.GossipKeyFile != "", "cluster-secret-file": c.ClusterSecretFile != ""} {
			if set {
				return fmt.Errorf("--%s: a store of SQLite is one member's alone; members of a "+
					"cluster share a store of PostgreSQL (--store postgres://…)", flag)
			}
		}
		return nil
	}
	if v := c.Limits.Value; v > cluster.MostValue {
		return fmt.Errorf("--max-value %d: members send each other no values above %d bytes: "+
			"use a smaller limit, or a store of SQLite, which is one member's alone", v, cluster.MostValue)
	}
	if err := c.checkAddresses(); err != nil {
		return err
	}
	if _, err := c.advertiseURL(); err != nil {
		return err
	}
	return c.checkSecrets()
}

// checkAddresses rejects text that is not an address. An address that does not answer, or a name
// that is not known yet, is accepted, because that may change.
func (c *Config) checkAddresses() error {
	if c.Listen != "" && !isHostPort(c.Listen) {
		return fmt.Errorf("--listen %q is no HOST:PORT: write it like 127.0.0.1:8070", c.Listen)
	}
	if c.Gossip != "" && !isHostPort(c.Gossip) {
		return fmt.Errorf("--gossip %q is no HOST:PORT: write it like 10.0.0.1:8071", c.Gossip)
	}
	for _, seed := range c.Join {
		if !isHostPort(seed) || strings.HasPrefix(seed, ":") {
			return fmt.Errorf("--join %q is no HOST:PORT of a member's gossip: write it like "+
				"10.0.0.1:8071, with commas between several", seed)
		}
	}
	return nil
}

func isHostPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err == nil
}

// advertiseURL returns the URL where other members reach this one; "" if it does not listen.
func (c *Config) advertiseURL() (string, error) {
	if c.Advertise != "" {
		u, err := url.Parse(c.Advertise)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", fmt.Errorf("--advertise %q is no URL: write %s://HOST:PORT", c.Advertise, c.Scheme())
		}
		if u.Scheme != "https" && c.TLSCert != "" {
			return "", fmt.Errorf("--advertise %s: this member speaks TLS alone (--tls-cert), "+
				"and others would speak without it: write https://%s", c.Advertise, u.Host)
		}
		return strings.TrimSuffix(c.Advertise, "/"), nil
	}
	if c.Listen == "" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", fmt.Errorf("listen address %q: %w", c.Listen, err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return "", fmt.Errorf("--listen %s names no host that other members could call: say "+
			"with --advertise %s://HOST:%s where they reach this one", c.Listen, c.Scheme(), port)
	}
	return c.Scheme() + "://" + c.Listen, nil
}

// checkSecrets rejects a cluster that unknown processes could join: beyond this host, members need
// a key and a secret.
func (c *Config) checkSecrets() error {
	if c.Insecure {
		return nil
	}
	u, err := c.advertiseURL()
	if err != nil {
		return err
	}
	for _, addr := range []string{strings.TrimPrefix(strings.TrimPrefix(u, "http://"), "https://"), c.Listen, c.Gossip} {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			host = addr
		}
		if ip, err := netip.ParseAddr(host); addr == "" || host == "localhost" || err == nil && ip.IsLoopback() {
			continue
		}
		host = cmp.Or(host, addr) // ":8070" means every address of this host
		for flag, file := range map[string]string{"gossip-key-file": c.GossipKeyFile, "cluster-secret-file": c.ClusterSecretFile} {
			if file == "" {
				return fmt.Errorf("members of a cluster can be reached from other hosts at %s: "+
					"give all of them the same --%s, listen on 127.0.0.1, or allow it "+
					"explicitly (--insecure)", host, flag)
			}
		}
	}
	return nil
}

// clusterName returns the name that members of this cluster use among themselves. Each schema of
// the database is a cluster of its own.
func (c *Config) clusterName() string {
	if schema := cmp.Or(c.Schema, postgres.DefaultSchema); schema != postgres.DefaultSchema {
		return c.Cluster + "/" + schema
	}
	return c.Cluster
}

// gossipConfig returns the settings of gossip: it listens on the host of the API and advertises the
// name of Advertise.
func (c *Config) gossipConfig() (gossip.Config, error) {
	settings := gossip.Config{Cluster: c.clusterName(), Listen: c.Gossip,
		Fallback: c.Gossip == "", Seeds: c.Join, Profile: c.GossipProfile, Log: c.Logger}
	if settings.Listen == "" {
		host, _, err := net.SplitHostPort(cmp.Or(c.Listen, "127.0.0.1:0"))
		if err != nil {
			return settings, fmt.Errorf("listen address %q: %w", c.Listen, err)
		}
		settings.Listen = net.JoinHostPort(host, gossipPort)
	}
	host, _, _ := net.SplitHostPort(c.Gossip) // gossip itself reports an invalid address
	ip, err := netip.ParseAddr(host)
	// then this address is advertised: the name may be unknown yet, or still point to another host
	concrete := err == nil && !ip.IsUnspecified()
	if u, err := url.Parse(c.Advertise); err == nil && !concrete {
		settings.Advertise = u.Hostname()
	}
	if c.GossipKeyFile != "" {
		text, err := os.ReadFile(c.GossipKeyFile)
		if err == nil {
			settings.Keys, err = gossip.ParseKeys(text)
		}
		if err != nil {
			return settings, fmt.Errorf("--gossip-key-file %s: %w", c.GossipKeyFile, err)
		}
	}
	return settings, nil
}

// clusterSecret returns the secret by which members authenticate: from the file, or else from their
// store.
func (c *Config) clusterSecret(ctx context.Context, store persistence.Members) (string, error) {
	if c.ClusterSecretFile == "" {
		return store.Secret(ctx)
	}
	content, err := os.ReadFile(c.ClusterSecretFile)
	secret := strings.TrimSpace(string(content))
	if err == nil && secret == "" {
		err = errors.New("there is no secret in it")
	}
	if err != nil {
		return "", fmt.Errorf("--cluster-secret-file %s: %w", c.ClusterSecretFile, err)
	}
	return secret, nil
}

// allowedHosts returns the host names that clients may use for the API besides its address; the
// name that other members use is one of them.
func (c *Config) allowedHosts() []string {
	u, err := url.Parse(c.Advertise)
	if err != nil || c.Advertise == "" {
		return c.AllowHosts
	}
	return append(slices.Clone(c.AllowHosts), u.Hostname())
}

// newMembership opens the listeners for other members.
func (e *Engine) newMembership(ctx context.Context) (*membership.Membership, error) {
	o := membership.Options{ID: cluster.Identity{Cluster: e.cfg.clusterName()}, Lease: e.cfg.Lease,
		Serves: e.serves, Scheme: e.cfg.Scheme(), Listen: e.cfg.Listen,
		Store: e.stores.Newest, Reader: e.stores.Reader, TLS: e.tls, Logger: e.cfg.Logger}
	var err error
	if o.ID.Secret, err = e.cfg.clusterSecret(ctx, e.stores.Newest); err != nil {
		return nil, err
	}
	if o.URL, err = e.cfg.advertiseURL(); err != nil {
		return nil, err
	}
	if o.Gossip, err = e.cfg.gossipConfig(); err != nil {
		return nil, err
	}
	return membership.Open(o)
}
