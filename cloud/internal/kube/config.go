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

// mounted is the folder with the service account of a pod.
const mounted = "/var/run/secrets/kubernetes.io/serviceaccount"

// clusterAccess holds the address of an API server and the credentials for it.
type clusterAccess struct {
	server    string
	tls       *tls.Config
	token     string     // "" for tokenFile, login, or none
	tokenFile string     // read for each request, because it may be replaced
	login     *execLogin // gets tokens from another program; nil if none
}

// newClient returns a client for a kubeconfig file; "" means KUBECONFIG, this pod's own account, or
// ~/.kube/config.
func newClient(path string) (*kubeClient, error) {
	c, err := findCluster(path)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxIdleConnsPerHost = c.tls, 50
	transport.ResponseHeaderTimeout = answerStays
	return &kubeClient{clusterAccess: *c, http: &http.Client{Transport: transport}}, nil
}

// answerStays is the time limit for the headers of an answer. Its body, such as a log, may take
// longer.
const answerStays = 30 * time.Second

func findCluster(path string) (*clusterAccess, error) {
	if path == "" {
		path, _, _ = strings.Cut(os.Getenv("KUBECONFIG"), string(os.PathListSeparator))
	}
	if path != "" {
		return readKubeconfig(path)
	}
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" {
		return inClusterAccess(host, os.Getenv("KUBERNETES_SERVICE_PORT"), mounted)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	return readKubeconfig(filepath.Join(home, ".kube", "config"))
}

// inClusterAccess returns the access to the cluster in which this process runs.
func inClusterAccess(host, port, account string) (*clusterAccess, error) {
	authorities, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, err
	}
	c := &clusterAccess{server: "https://" + net.JoinHostPort(host, port), tokenFile: filepath.Join(account, "token"), tls: &tls.Config{}}
	return c, trustAuthorities(c.tls, authorities)
}

func trustAuthorities(to *tls.Config, authorities []byte) error {
	to.RootCAs = x509.NewCertPool()
	if !to.RootCAs.AppendCertsFromPEM(authorities) {
		return errors.New("the certificate of the cluster's authority cannot be read")
	}
	return nil
}

// kubeconfig is the supported part of a kubeconfig file.
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

// findExtension returns an extension of a cluster; nil if there is none.
func (c *clusterPart) findExtension(name string) any {
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

// readKubeconfig reads the current context of a kubeconfig file.
func readKubeconfig(path string) (*clusterAccess, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var k kubeconfig
	if err := yaml.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	of, as, err := k.currentContext()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c, err := resolveAccess(of, as, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// currentContext returns the cluster and the user of the current context.
func (k *kubeconfig) currentContext() (of *clusterPart, as *userPart, err error) {
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
		return nil, nil, errors.New("its user has an auth-provider, which is not known here: " +
			"give it a token, a tokenFile, a certificate or a program that gives tokens (exec)")
	}
	return of, as, nil
}

// resolveAccess returns the access to a cluster as a user. Paths are relative to the folder of the
// file.
func resolveAccess(of *clusterPart, as *userPart, dir string) (*clusterAccess, error) {
	c := &clusterAccess{server: strings.TrimSuffix(of.Server, "/"), token: as.Token,
		tls: &tls.Config{ServerName: of.ServerName, InsecureSkipVerify: of.Insecure}}
	if as.TokenFile != "" && as.Token == "" {
		c.tokenFile = resolvePath(dir, as.TokenFile)
	}
	authorities, err := readData(dir, of.Authority, of.AuthorityData)
	if err == nil && authorities != nil {
		err = trustAuthorities(c.tls, authorities)
	}
	if err != nil {
		return nil, err
	}
	if c.login, err = loginTo(of, authorities, as, dir); err != nil {
		return nil, err
	}
	certificate, err := readData(dir, as.Certificate, as.CertificateData)
	if err != nil || certificate == nil {
		return c, err
	}
	key, err := readData(dir, as.Key, as.KeyData)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	c.tls.Certificates = []tls.Certificate{pair}
	return c, err
}

func resolvePath(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// readData returns data that is embedded in the file, or in another file.
func readData(dir, path, data string) ([]byte, error) {
	switch {
	case data != "":
		return base64.StdEncoding.DecodeString(data)
	case path != "":
		return os.ReadFile(resolvePath(dir, path))
	}
	return nil, nil
}
