package troupe

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
)

func TestInvalidClusterSettingsAreRejected(t *testing.T) {
	const locked, shared = true, false
	for name, tt := range map[string]struct {
		cfg    Config
		locked bool
		want   string
	}{
		"values too large for members": {Config{Limits: flow.Limits{Value: 25 << 20}}, shared,
			"--max-value 26214400: members send each other no values above 25165824 bytes"},
		"a cluster on SQLite": {Config{Join: []string{"b:8071"}}, locked,
			"--join: a store of SQLite is one member's alone"},
		"SQLite alone":    {Config{Listen: "0.0.0.0:8070"}, locked, ""},
		"nothing is said": {Config{}, shared, ""},
		"loopback":        {Config{Listen: "127.0.0.1:8070"}, shared, ""},
		"localhost":       {Config{Listen: "localhost:8070"}, shared, ""},
		"no host to be reached at": {Config{Listen: ":8070"}, shared,
			"say with --advertise http://HOST:8070"},
		"every host": {Config{Listen: "0.0.0.0:8070", TLSCert: "c"}, shared,
			"say with --advertise https://HOST:8070"},
		"plain beside TLS": {Config{Advertise: "http://localhost:8070",
			TLSCert: "c"}, shared, "this member speaks TLS alone (--tls-cert), and others would " +
			"speak without it: write https://localhost:8070"},
		"TLS by somebody else": {Config{Advertise: "https://localhost:8070"}, shared, ""},
		"no URL": {Config{Advertise: "member-1:8070"}, shared,
			"--advertise \"member-1:8070\" is no URL"},
		"an address without a port": {Config{Listen: "127.0.0.1"}, shared,
			`--listen "127.0.0.1" is no HOST:PORT: write it like 127.0.0.1:8070`},
		"gossip without a port": {Config{Gossip: "10.0.0.1"}, shared,
			`--gossip "10.0.0.1" is no HOST:PORT: write it like 10.0.0.1:8071`},
		"gossip at a port of a name": {Config{Gossip: "127.0.0.1:gossip"}, shared,
			`--gossip "127.0.0.1:gossip" is no HOST:PORT`},
		"seeds with a URL among them": {Config{Join: []string{"a:8071", "http://b:8070"}},
			shared, `--join "http://b:8070" is no HOST:PORT of a member's gossip: write it like ` +
				`10.0.0.1:8071`},
		"a seed at no port there is": {Config{Join: []string{"a:99999"}}, shared,
			`--join "a:99999" is no HOST:PORT`},
		"a seed on no host": {Config{Join: []string{":8071"}}, shared,
			`--join ":8071" is no HOST:PORT`},
		"beyond this host": {Config{Listen: "0.0.0.0:8070",
			Advertise: "http://member-1:8070", GossipKeyFile: "k"}, shared,
			"give all of them the same --cluster-secret-file"},
		"gossip beyond this host": {Config{Listen: "127.0.0.1:8070",
			Gossip: "10.0.0.1:8071", ClusterSecretFile: "s"}, shared, "the same --gossip-key-file"},
		"listening beyond this host": {Config{Listen: ":8070",
			Advertise: "http://localhost:8070"}, shared,
			"other hosts at :8070: give all of them the same --"},
		"gossip at every address": {Config{Listen: "127.0.0.1:8070",
			Advertise: "http://127.0.0.1:8070", Gossip: ":8071"}, shared,
			"other hosts at :8071: give all of them the same --"},
		"beyond this host with secrets": {Config{Advertise: "http://member-1:8070",
			GossipKeyFile: "k", ClusterSecretFile: "s"}, shared, ""},
		"a lease that busy disks outlast": {Config{Lease: time.Millisecond}, shared,
			"--lease 1ms: leave a member from 1s to 10m0s without a sign of life"},
		"beyond this host and explicitly": {Config{Advertise: "http://member-1:8070", Insecure: true}, shared, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.cfg.checkCluster(tt.locked)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestInvalidSettingsAreReportedBeforeTheStoreIsOpened(t *testing.T) {
	const nobody = "postgres://127.0.0.1:1/troupe"
	file := filepath.Join(t.TempDir(), "troupe.db")
	for want, cfg := range map[string]Config{
		"say with --advertise http://HOST:8070": {Store: nobody, Listen: ":8070"},
		"give all of them the same --":          {Store: nobody, Advertise: "http://member-1:8070"},
		"--join: a store of SQLite":             {Store: "sqlite:" + file, Join: []string{"b:8071"}},
	} {
		_, err := Open(t.Context(), cfg)
		require.ErrorContains(t, err, want)
	}
	require.NoFileExists(t, file)
}

func TestClustersOfTwoSchemasHaveDifferentNames(t *testing.T) {
	name := func(cluster, schema string) string { return (&Config{Cluster: cluster, Schema: schema}).clusterName() }
	require.Equal(t, "troupe", name("troupe", ""))
	require.Equal(t, "troupe", name("troupe", "troupe"))
	require.Equal(t, "troupe/band", name("troupe", "band"))
}

func TestGossipListensOnTheHostOfTheAPIByDefault(t *testing.T) {
	cfg := Config{Listen: "127.0.0.1:9000"}
	settings, err := cfg.gossipConfig()
	require.NoError(t, err)
	require.Equal(t, []any{"127.0.0.1:8071", true, ""}, []any{settings.Listen, settings.Fallback, settings.Advertise})
	cfg = Config{Listen: "0.0.0.0:9000", Advertise: "https://member-1:9000", Gossip: "0.0.0.0:9001"}
	settings, err = cfg.gossipConfig()
	require.NoError(t, err)
	require.Equal(t, []any{"0.0.0.0:9001", false, "member-1"}, []any{settings.Listen, settings.Fallback, settings.Advertise})
	require.Equal(t, []string{"member-1"}, cfg.allowedHosts(), "it is called by that name")
}

func TestInvalidClusterSecretsAreRejected(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte(" \n"), 0o600))
	cfg := Config{ClusterSecretFile: file, GossipKeyFile: file}
	store := model.New(model.Options{})
	_, err := cfg.clusterSecret(t.Context(), store)
	require.ErrorContains(t, err, "--cluster-secret-file "+file+": there is no secret in it")
	_, err = cfg.gossipConfig()
	require.ErrorContains(t, err, "--gossip-key-file "+file)
	require.NoError(t, os.WriteFile(file, []byte(" open sesame\n"), 0o600))
	secret, err := cfg.clusterSecret(t.Context(), store)
	require.NoError(t, err)
	require.Equal(t, "open sesame", secret)

	cfg.ClusterSecretFile = ""
	secret, err = cfg.clusterSecret(t.Context(), store)
	require.NoError(t, err)
	require.NotEmpty(t, secret, "without a file it is the store's")
}

func TestGossipAdvertisesItsOwnAddressRatherThanTheMembersName(t *testing.T) {
	for gossip, want := range map[string]string{"": "member-1", ":8071": "member-1",
		"0.0.0.0:8071": "member-1", "10.0.0.1:8071": "", "[fd00::1]:8071": ""} {
		settings, err := (&Config{Listen: ":8070", Advertise: "https://member-1:8070", Gossip: gossip}).gossipConfig()
		require.NoError(t, err)
		require.Equal(t, want, settings.Advertise, gossip)
	}
}
