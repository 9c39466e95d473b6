package kube

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// mounted is where a pod finds its own account.
const mounted = "/var/run/secrets/kubernetes.io/serviceaccount"

// cluster is how an API server is reached, and as whom.
type cluster struct {
	server    string
	tls       *tls.Config
	token     string // "" = tokenFile, login, or none
	tokenFile string // read anew for each request: who mounts it replaces it
	login     *login // asks another program; nil = none
}

// connect makes a client of a kubeconfig file, "" = what KUBECONFIG says, this pod's own account,
// or ~/.kube/config.
func connect(path string) (*client, error) {
	c, err := find(path)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxIdleConnsPerHost = c.tls, 50
	transport.ResponseHeaderTimeout = answerStays
	return &client{cluster: *c, http: &http.Client{Transport: transport}}, nil
}

// answerStays is how long an API server may think about its answer; what follows, such as a log,
// may take longer.
const answerStays = 30 * time.Second

func find(path string) (*cluster, error) {
	if path == "" {
		path, _, _ = strings.Cut(os.Getenv("KUBECONFIG"), string(os.PathListSeparator))
	}
	if path != "" {
		return read(path)
	}
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" {
		return inside(host, os.Getenv("KUBERNETES_SERVICE_PORT"), mounted)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	return read(filepath.Join(home, ".kube", "config"))
}

// inside is the cluster that this process is in.
func inside(host, port, account string) (*cluster, error) {
	authorities, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, err
	}
	c := &cluster{server: "https://" + net.JoinHostPort(host, port), tokenFile: filepath.Join(account, "token"), tls: &tls.Config{}}
	return c, trust(c.tls, authorities)
}

func trust(to *tls.Config, authorities []byte) error {
	to.RootCAs = x509.NewCertPool()
	if !to.RootCAs.AppendCertsFromPEM(authorities) {
		return errors.New("the certificate of the cluster's authority cannot be read")
	}
	return nil
}

// kubeconfig is the part of such a file that we know.
type kubeconfig struct {
	Current  string `yaml:"current-context"`
	Contexts []struct {
		Name    string `yaml:"name"`
		Context struct {
			Cluster string `yaml:"cluster"`
			User    string `yaml:"user"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string      `yaml:"name"`
		Cluster clusterPart `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string   `yaml:"name"`
		User userPart `yaml:"user"`
	} `yaml:"users"`
}

type clusterPart struct {
	Server        string `yaml:"server"`
	Authority     string `yaml:"certificate-authority"`
	AuthorityData string `yaml:"certificate-authority-data"`
	ServerName    string `yaml:"tls-server-name"`
	Insecure      bool   `yaml:"insecure-skip-tls-verify"`
	Extensions    []struct {
		Name      string `yaml:"name"`
		Extension any    `yaml:"extension"`
	} `yaml:"extensions"`
}

// extension is what a cluster says in one of its extensions, nil if nothing.
func (c *clusterPart) extension(name string) any {
	for _, e := range c.Extensions {
		if e.Name == name {
			return e.Extension
		}
	}
	return nil
}

type userPart struct {
	Token           string `yaml:"token"`
	TokenFile       string `yaml:"tokenFile"`
	Certificate     string `yaml:"client-certificate"`
	CertificateData string `yaml:"client-certificate-data"`
	Key             string `yaml:"client-key"`
	KeyData         string `yaml:"client-key-data"`
	Provider        any    `yaml:"auth-provider"`

	Exec *loginPart `yaml:"exec"`
}

// read reads a kubeconfig file: its current context.
func read(path string) (*cluster, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var k kubeconfig
	if err := yaml.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	of, as, err := k.current()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c, err := reached(of, as, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// current is the cluster of the current context, and the user.
func (k *kubeconfig) current() (of *clusterPart, as *userPart, err error) {
	for _, c := range k.Contexts {
		if c.Name != k.Current {
			continue
		}
		for i := range k.Clusters {
			if k.Clusters[i].Name == c.Context.Cluster {
				of = &k.Clusters[i].Cluster
			}
		}
		for i := range k.Users {
			if k.Users[i].Name == c.Context.User {
				as = &k.Users[i].User
			}
		}
	}
	switch {
	case of == nil || of.Server == "":
		return nil, nil, fmt.Errorf("the context %q, which is the current one, names no cluster with a server", k.Current)
	case as == nil:
		as = &userPart{}
	case as.Provider != nil:
		return nil, nil, errors.New("its user has an auth-provider, which is not known here: give it a token, a tokenFile, a certificate or a program that gives tokens (exec)")
	}
	return of, as, nil
}

// reached says how a cluster is reached as a user. Paths begin at the folder of the file.
func reached(of *clusterPart, as *userPart, dir string) (*cluster, error) {
	c := &cluster{server: strings.TrimSuffix(of.Server, "/"), token: as.Token, tls: &tls.Config{ServerName: of.ServerName, InsecureSkipVerify: of.Insecure}}
	if as.TokenFile != "" && as.Token == "" {
		c.tokenFile = under(dir, as.TokenFile)
	}
	authorities, err := given(dir, of.Authority, of.AuthorityData)
	if err == nil && authorities != nil {
		err = trust(c.tls, authorities)
	}
	if err != nil {
		return nil, err
	}
	if c.login, err = loginTo(of, authorities, as, dir); err != nil {
		return nil, err
	}
	certificate, err := given(dir, as.Certificate, as.CertificateData)
	if err != nil || certificate == nil {
		return c, err
	}
	key, err := given(dir, as.Key, as.KeyData)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	c.tls.Certificates = []tls.Certificate{pair}
	return c, err
}

func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// given is what is in the file itself, or in another one.
func given(dir, path, data string) ([]byte, error) {
	switch {
	case data != "":
		return base64.StdEncoding.DecodeString(data)
	case path != "":
		return os.ReadFile(under(dir, path))
	}
	return nil, nil
}
