package serve

import (
	"time"

	"github.com/troupe-engine/troupe"
)

// clusterFlags holds a member's cluster settings.
type clusterFlags struct {
	Cluster           string        `env:"TROUPE_CLUSTER" placeholder:"NAME" group:"Cluster" help:"Cluster name, the same for all members of a PostgreSQL store (troupe)."`
	Advertise         string        `env:"TROUPE_ADVERTISE" placeholder:"URL" group:"Cluster" help:"URL where other members reach this one. Default: the address of --listen, if it names a host."`
	Gossip            string        `env:"TROUPE_GOSSIP" placeholder:"HOST:PORT" group:"Cluster" help:"Gossip address (the host of --listen, port 8071 or a free one)."`
	Join              []string      `env:"TROUPE_JOIN" placeholder:"HOST:PORT" group:"Cluster" help:"Gossip addresses of members to join. Default: the members in the store."`
	GossipKeyFile     string        `env:"TROUPE_GOSSIP_KEY_FILE" type:"existingfile" group:"Cluster" help:"File with gossip encryption keys, one base64 key per line; the first one encrypts. Required beyond this host."`
	ClusterSecretFile string        `env:"TROUPE_CLUSTER_SECRET_FILE" type:"existingfile" group:"Cluster" help:"File with the shared secret of all members. Required beyond this host."`
	GossipProfile     string        `env:"TROUPE_GOSSIP_PROFILE" enum:"fast,lan" default:"fast" group:"Cluster" help:"Failure detection speed: fast or lan."`
	Lease             time.Duration `env:"TROUPE_LEASE" default:"2s" group:"Cluster" help:"Time without renewal after which other members take over a member's tasks. Use the same value for all members."`
}

func (f *clusterFlags) setClusterConfig(cfg *troupe.Config) {
	cfg.Cluster, cfg.Advertise, cfg.Gossip, cfg.Join = f.Cluster, f.Advertise, f.Gossip, f.Join
	cfg.GossipKeyFile, cfg.ClusterSecretFile, cfg.GossipProfile = f.GossipKeyFile, f.ClusterSecretFile, f.GossipProfile
	cfg.Lease = f.Lease
}
