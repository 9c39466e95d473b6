package cli

import (
	"time"

	"github.com/troupe-engine/troupe"
)

// clusterFlags holds a member's cluster settings.
type clusterFlags struct {
	Cluster           string        `env:"TROUPE_CLUSTER" placeholder:"NAME" group:"Cluster" help:"Name of the cluster that the members with one store of PostgreSQL make (troupe)."`
	Advertise         string        `env:"TROUPE_ADVERTISE" placeholder:"URL" group:"Cluster" help:"Where other members reach this one. Default: the address of --listen, if it names a host."`
	Gossip            string        `env:"TROUPE_GOSSIP" placeholder:"HOST:PORT" group:"Cluster" help:"Where this member hears of others (the host of --listen, port 8071 or, when that is taken, a free one)."`
	Join              []string      `env:"TROUPE_JOIN" placeholder:"HOST:PORT" group:"Cluster" help:"Members to begin with; none = those that the store knows."`
	GossipKeyFile     string        `env:"TROUPE_GOSSIP_KEY_FILE" type:"existingfile" group:"Cluster" help:"Keys that gossip is encrypted with, one a line in base64; the first one encrypts. Needed beyond this host."`
	ClusterSecretFile string        `env:"TROUPE_CLUSTER_SECRET_FILE" type:"existingfile" group:"Cluster" help:"Secret that members prove themselves with to each other. Needed beyond this host."`
	GossipProfile     string        `env:"TROUPE_GOSSIP_PROFILE" enum:"fast,lan" default:"fast" group:"Cluster" help:"How soon a silent member is noticed: fast or lan."`
	Lease             time.Duration `env:"TROUPE_LEASE" default:"2s" group:"Cluster" help:"How long a member may be silent before the others take its tasks over: the same for all members."`
}

func (f *clusterFlags) setClusterConfig(cfg *troupe.Config) {
	cfg.Cluster, cfg.Advertise, cfg.Gossip, cfg.Join = f.Cluster, f.Advertise, f.Gossip, f.Join
	cfg.GossipKeyFile, cfg.ClusterSecretFile, cfg.GossipProfile = f.GossipKeyFile, f.ClusterSecretFile, f.GossipProfile
	cfg.Lease = f.Lease
}
